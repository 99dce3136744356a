// Package kube is how the commands of gpuslice reach a cluster: with kubectl's flags, kubectl's precedence, and words that
// say what to do where there is none.
//
// It uses client-go's clientcmd and not cli-runtime's ConfigFlags: those bring kustomize and a disk cache along for the
// sake of three flags.
package kube
