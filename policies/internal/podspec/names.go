package podspec

import "strings"

// Names of what gpuslice adds to a pod begin with these.
const (
	volumePrefix    = "gpuslice-" // volumes of ours
	ContainerPrefix = "gpuslice-" // containers of ours
)

func IsOurContainer(name string) bool { return strings.HasPrefix(name, ContainerPrefix) }

func IsOurVolume(name string) bool { return strings.HasPrefix(name, volumePrefix) }

// LabelPodSecurity is the label of a namespace that names its Pod Security Standard.
const LabelPodSecurity = "pod-security.kubernetes.io/enforce"
