// Package uninstall is the command that removes an installation of gpuslice so that nothing of it can stand in the way: what
// the API server asks is removed first, since it asks no webhook about webhook configurations, and everything else after
// that.
//
// Objects are found by the label app.kubernetes.io/name: gpuslice and by the names of what gpuslice itself creates. Running
// it twice is the same as running it once.
package uninstall
