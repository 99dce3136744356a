// Package promise holds what a pod was given: the Promise, its signature, and its edits of a pod. Each kind of edit is one file,
// edit_KIND.go, that applies, reverts and restores it.
//
// What is planned stands in the Promise, signed and for the images that the pod was created with, and in an annotation, for those
// that it has now: a build that misses either denies the pod, so none can leave one out while builds serve side by side.
package promise
