package modes

// Ways in which the guard reaches NVML.
const (
	AccessAuto   = "auto" // the default: whatever the cluster has
	AccessEnv    = "env"
	AccessVolume = "volume"
	AccessCDI    = "cdi"
)
