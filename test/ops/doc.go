// Package ops shows that operating gpuslice harms nobody: replicas that are restarted and upgraded under load, connections that
// idle, everything of ours down, reviews of hostile size, and hours of steady work. The replicas are processes beside a real
// API server, installed from the manifests that users apply; a failure is one that the API server's clients saw.
//
// GPUSLICE_TEST=apiserver runs it scaled to minutes. With "long" too it runs at full size and prints a table of figures.
package ops
