// Command demo shows the main job on something real: it starts a Kubernetes API server, installs gpuslice from its own
// manifests, makes nodes of several kinds, creates sample pods, and prints of each what was asked, what came out, and
// which enforcement is planned. It ends with 1 when a pod turns out otherwise than its file expects.
package main
