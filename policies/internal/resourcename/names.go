package resourcename

// Resources for GPUs.
const (
	SharedGPU    = "nvidia.com/gpu.shared"
	NVIDIAPrefix = "nvidia.com/" // of all GPU resources
	MIGPrefix    = NVIDIAPrefix + "mig-"
)

// RequestsPrefix begins the names under which ResourceQuotas count extended resources.
const RequestsPrefix = "requests."

// NVIDIADriver is NVIDIA's driver of dynamic resource allocation.
const NVIDIADriver = "gpu.nvidia.com"
