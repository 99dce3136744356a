// Package promise holds what a pod was given: the Promise, its signature, and its edits of a pod. Each kind of edit is one file,
// edit_KIND.go, that applies, reverts and restores it. The package also reads pods within bounds.
package promise
