// Package uninstall is the command that removes an installation of gpuslice so that nothing of it can stand in the way:
// the webhook configurations are removed first, since the API server calls no webhook about these, and everything else
// after that.
//
// Objects are found by the label app.kubernetes.io/name: gpuslice and by the names of gpuslice's own objects. Running
// it twice is the same as running it once.
package uninstall
