// Package layout finds how to divide devices. It is pure.
//
//	kinds (kinds.go), families of forms (families.go, mig.go) -> how few devices hold the pods (pack.go)
//	-> how few could at best (bound.go) -> which nodes get which form (assign.go, groups.go)
package layout
