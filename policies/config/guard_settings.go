package config

import corev1 "k8s.io/api/core/v1"

// GuardSettings are what the installation says about the guard: where its image is and what it may use. They are not
// policy, since they are the same in every namespace.
type GuardSettings struct {
	Image      string
	PullPolicy corev1.PullPolicy
	PullSecret string // must exist in the tenant's namespace; empty: none
	CPU        string // requests and limits alike, so that Guaranteed pods stay so
	Memory     string
}
