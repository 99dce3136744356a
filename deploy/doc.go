// Package deploy holds the manifests of gpuslice, numbered in the order in which they are applied. They are embedded, so
// that tests and tools read what users apply.
//
// The webhook configurations carry no caBundle: the webhook writes its own, or with the component certmanager the cainjector. 60-policies are samples and not part of an
// installation.
package deploy
