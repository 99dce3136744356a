package resourcename

// Resources for GPUs.
const (
	SharedGPU    = "nvidia.com/gpu.shared"
	NVIDIAPrefix = "nvidia.com/" // of all GPU resources
	MIGPrefix    = NVIDIAPrefix + "mig-"
)
