// Package kube is how the commands of gpuslice reach a cluster: with kubectl's flags, kubectl's precedence, and errors that
// name the way out.
//
// It uses client-go's clientcmd and not cli-runtime's ConfigFlags: those bring kustomize and a disk cache along for the
// sake of three flags.
package kube
