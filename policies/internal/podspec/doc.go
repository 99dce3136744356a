// Package podspec separates an author's fields of a pod spec from those of gpuslice.
package podspec
