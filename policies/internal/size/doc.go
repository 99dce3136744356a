// Package size is the size of a slice as a container requests it or a policy gives it.
package size
