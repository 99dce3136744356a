// Package events writes what people should see as Events: on pods, and on the owners of pods that were refused.
//
// A refused pod leaves nothing behind that anyone could describe; what its author looks at is the Deployment. Refusals
// therefore tells the pod's controller, and the controller of that one, what was refused and why.
//
// The one idea: telling never costs a decision. It happens after the answer, through a queue that is bounded, with an
// allowance of its own, and what is too much is dropped and counted: whoever may create pods can have thousands refused.
package events
