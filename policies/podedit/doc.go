// Package podedit writes a Promise's edits on a pod, and removes them again. Each kind of edit is one file,
// edit_KIND.go, that applies, reverts and restores it. Undone finds missing edits of a Promise on a pod. Operations is
// the JSON patch between two pods.
package podedit
