package podspec

import "strings"

// Prefix starts the names of gpuslice's containers and volumes.
const Prefix = "gpuslice-"

// IsOurs reports whether a container or volume is gpuslice's, by its name.
func IsOurs(name string) bool { return strings.HasPrefix(name, Prefix) }

// LabelPodSecurity is the label of a namespace that names its Pod Security Standard.
const LabelPodSecurity = "pod-security.kubernetes.io/enforce"
