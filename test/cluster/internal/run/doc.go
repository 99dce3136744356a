// Package run keeps the things that live as long as one run of a test: processes that die with it, and folders that can
// be distinguished from those of a run that is still going. It knows nothing of Kubernetes.
package run
