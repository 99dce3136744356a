// Package events writes Events: on pods, and on the owners of pods that were denied.
//
// A denied pod leaves no object behind that anyone could describe; its author looks at the Deployment. Denials
// therefore writes an Event on the pod's controller and on the controller of that one, with the rule and the reason.
//
// The one idea: an Event never costs a decision. It is written after the answer, through a bounded Queue, with a rate
// limit of its own, and any excess is dropped and counted: whoever may create pods can have thousands denied.
package events
