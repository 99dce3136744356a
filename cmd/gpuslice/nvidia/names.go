package nvidia

// ResourcePrefix begins the names of all GPU resources.
const ResourcePrefix = "nvidia.com/"

// The variables by which a pod asks the container toolkit for the driver's own memory limit.
const (
	VarMemoryLimit   = "NVIDIA_GPU_MEMORY_LIMIT"
	VarMemoryRequest = "NVIDIA_GPU_MEMORY_REQUEST"
)
