// Package podspec reads what an author wrote in a pod spec apart from what gpuslice wrote there.
package podspec
