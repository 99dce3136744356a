// Package promise holds the record of a pod's slices: the Promise, its text, its signature, and the planned tiers.
// Package podedit writes it on a pod, and package accounting charges for it.
//
// The plan is in the Promise, signed and for the images that the pod was created with, and in an annotation, for its
// present images: a build that misses either denies the pod, so none can leave one out while builds serve side by side.
package promise
