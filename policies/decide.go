package policies

import corev1 "k8s.io/api/core/v1"

// Input is all that a decision depends on. Decide changes none of it.
type Input struct {
	Pod       *corev1.Pod
	Namespace Namespace
	Policy    *Policy // nil: no policy governs the namespace
	// PolicyError is why the namespace's policy cannot be used, when no last good version is known. Pods that ask for
	// a slice are refused with it.
	PolicyError error
	Pools       []Pool
}

// Namespace is what a decision may know of the pod's namespace.
type Namespace struct {
	Name   string
	Labels map[string]string
}

// Decide answers one pod: left alone, rewritten under a Promise, or refused. It changes nothing it is given, does no
// I/O, and gives the same answer every time. Deciding its own output changes nothing.
func Decide(in Input) Decision {
	return Decision{}
}
