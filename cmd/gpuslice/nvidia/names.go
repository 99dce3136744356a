package nvidia

// ResourcePrefix begins the names of all GPU resources.
const ResourcePrefix = "nvidia.com/"

// The variables by which a pod requests the driver's own memory limit from the container toolkit.
const (
	VarMemoryLimit   = "NVIDIA_GPU_MEMORY_LIMIT"
	VarMemoryRequest = "NVIDIA_GPU_MEMORY_REQUEST"
)
