// Command demo shows the main job on something real. Without more it runs the webhook, the guard and two tenants as processes of
// this machine: the webhook answers reviews of pods over TLS, and the guard ends the tenant that goes past its slice on a simulated
// driver while its neighbour notices nothing. On a cluster it starts a Kubernetes API server and, where the machine can have one, a
// node with a simulated GPU (package test/cluster), installs gpuslice from its own manifests, and shows the same. It ends with 1
// when anything turns out otherwise than expected.
package main
