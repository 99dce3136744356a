package modes

// Ways in which the guard reaches NVML.
const (
	AccessAuto   = "auto" // the default: whatever the cluster has
	AccessEnv    = "env"
	AccessVolume = "volume"
	AccessCDI    = "cdi"
	AccessClaim  = "claim" // that of the slice: no policy has to say so
)

// DescribeAccess names a way to NVML together with the pod's runtime class, on which it depends.
func DescribeAccess(way, runtimeClass string) string {
	if runtimeClass == "" {
		return way
	}
	return way + ", runtime class " + runtimeClass
}

// Guards that enforce a slice.
const (
	GuardAuto    = "auto"    // the default: the agent where each node of the pool has one, else the sidecar
	GuardSidecar = "sidecar" // a container of the pod
	GuardAgent   = "agent"   // the agent of the pod's node
)
