// Package promise holds the record of a pod's slices: the Promise, its text, its signature, and the planned tiers.
// Package podedit writes it on a pod, and package accounting charges for it.
//
// A pod has its plan twice: signed in the Promise, for the images that it was created with, and in an annotation of its
// own, for its present images. A build denies a pod that lacks either, so that no build can leave one out while another
// serves beside it.
package promise
