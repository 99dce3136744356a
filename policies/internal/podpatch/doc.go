// Package podpatch compares pods: as the JSON patch that leads from one to the other, and as the fields that differ.
package podpatch
