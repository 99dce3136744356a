// Package claimtemplates writes the ResourceClaimTemplates that pods with a slice name.
//
// The one idea: a template's name determines all of its content. So the mutating webhook names it and writes nothing; whoever leads writes
// it when a pod names it, Kubernetes then makes the pod's claim of it, and it does no harm to write it twice or late.
package claimtemplates
