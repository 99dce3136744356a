package modes

// Ways in which the guard reaches NVML.
const (
	AccessEnv    = "env"
	AccessVolume = "volume"
	AccessCDI    = "cdi"
)
