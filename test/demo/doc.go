// Command demo shows the main job on something real: it starts a Kubernetes API server, installs gpuslice from its own
// manifests, makes nodes of several kinds, creates sample pods, and prints of each what was asked, what came out, and
// which enforcement is planned. Where the machine can have one it then starts a real node with a simulated GPU (package
// test/cluster), and shows the guard end the pod that goes past its slice while its neighbour notices nothing. It ends
// with 1 when anything turns out otherwise than expected.
package main
