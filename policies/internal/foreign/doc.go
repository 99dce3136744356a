// Package foreign knows how the users of other systems request a part of a GPU, one file for each system, so that a pod that
// does is answered with what to write instead. Nothing here makes a request of a pod: package spellings has those that a policy
// may accept.
package foreign
