package podspec

import "strings"

// Prefix is how the names of what gpuslice adds to a pod begin: containers and volumes.
const Prefix = "gpuslice-"

// IsOurs reports whether a container or volume is gpuslice's, by its name.
func IsOurs(name string) bool { return strings.HasPrefix(name, Prefix) }

// LabelPodSecurity is the label of a namespace that names its Pod Security Standard.
const LabelPodSecurity = "pod-security.kubernetes.io/enforce"
