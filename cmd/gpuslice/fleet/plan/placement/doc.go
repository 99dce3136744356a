// Package placement simulates where the scheduler of Kubernetes places pods. It is pure: the same input has the same answer.
package placement
