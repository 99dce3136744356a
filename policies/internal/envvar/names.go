package envvar

import "strings"

// Variables that gpuslice writes by name. A value that a pod brings along under these names is not the author's to
// choose in a sliced pod: it is replaced, and the author gets a warning.
const (
	MPSPipe            = "CUDA_MPS_PIPE_DIRECTORY"
	MPSLog             = "CUDA_MPS_LOG_DIRECTORY"
	MPSPinned          = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
	MPSThreads         = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
	DriverLimit        = "NVIDIA_GPU_MEMORY_LIMIT"   // hard, integer MiB, container toolkit 1.20.1
	DriverRequest      = "NVIDIA_GPU_MEMORY_REQUEST" // soft, integer MiB
	MemoryBytes        = "GPUSLICE_MEMORY_BYTES"     // the slice per GPU, bytes, for anyone's own code
	AllocatorBytes     = "GPUSLICE_ALLOCATOR_BYTES"  // what the shim lets the caching allocator of one process hold
	VisibleDevices     = "NVIDIA_VISIBLE_DEVICES"
	DriverCapabilities = "NVIDIA_DRIVER_CAPABILITIES"
	Fraction           = "GPUSLICE_FRACTION" // the slice as a share of the device's total
)

// OwnPrefixes are the beginnings of variable names that belong to gpuslice in a sliced pod, for people.
const OwnPrefixes = "GPUSLICE_, CUDA_MPS_, NVIDIA_GPU_MEMORY_"

// IsOwn reports whether a variable of this name belongs to gpuslice in a sliced pod.
func IsOwn(name string) bool {
	for prefix := range strings.SplitSeq(OwnPrefixes, ", ") {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
