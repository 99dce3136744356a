// Package promise has the record of a pod's slices: the Promise, its text, its signature, and the planned tiers.
// Package podedit writes it on a pod, and package accounting charges for it.
//
// A pod has its plan twice: signed in the Promise, for the images that it was created with, and in an annotation of its
// own, for its present images. A build denies a pod that lacks either, so that no build can leave one out while another
// serves beside it.
//
// # Tried and left
//
//   - A custom resource for each pod's slice: it would have to be written before the pod exists and deleted when the pod never
//     does, a webhook's call may be a dry run, and a pod without its object would have no slice. An annotation is created,
//     copied and deleted with the pod, by the same write.
//   - A lookup, in a store, of what was promised instead of a signature: the validating webhook may be answered by another
//     replica a few milliseconds later. A signature needs nothing but the key, and counts in its own namespace alone.
//   - An asymmetric signature: nobody but gpuslice checks a promise, and every replica may make one, so that each would hold
//     the private key all the same.
//   - The difference to the author's pod instead of the Promise: others change the pod after the webhook, so that a difference
//     applies to another text. A Promise says what has to be there, and can be applied again.
package promise
