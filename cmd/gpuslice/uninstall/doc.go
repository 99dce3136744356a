// Package uninstall removes an installation of gpuslice so that nothing of it can stand in the way: what the API server
// asks goes first, since it asks no webhook about webhook configurations, and everything else after that.
//
// Objects are found by the label app.kubernetes.io/name: gpuslice and by the names that gpuslice gives what it makes
// itself. Asking twice is the same as asking once.
package uninstall
