package modes

// Ways in which the guard reaches NVML.
const (
	AccessAuto   = "auto" // the default: whatever the cluster has
	AccessEnv    = "env"
	AccessVolume = "volume"
	AccessCDI    = "cdi"
)

// Guards that enforce a slice.
const (
	GuardSidecar = "sidecar" // the default: a container of the pod
	GuardAgent   = "agent"   // the agent of the pod's node
)
