package nvidia

import "strings"

// Variables that gpuslice writes by name. A value that a pod brings along under these names is not the author's to
// choose in a sliced pod: it is replaced, and the author gets a warning.
const (
	EnvMPSPipe            = "CUDA_MPS_PIPE_DIRECTORY"
	EnvMPSLog             = "CUDA_MPS_LOG_DIRECTORY"
	EnvMPSPinned          = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
	EnvMPSThreads         = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
	EnvDriverLimit        = "NVIDIA_GPU_MEMORY_LIMIT"   // hard, integer MiB, container toolkit 1.20.1
	EnvDriverRequest      = "NVIDIA_GPU_MEMORY_REQUEST" // soft, integer MiB
	EnvMemoryBytes        = "GPUSLICE_MEMORY_BYTES"     // the slice per GPU, bytes, for anyone's own code
	EnvAllocatorBytes     = "GPUSLICE_ALLOCATOR_BYTES"  // the shim's limit on the caching allocator of one process
	EnvVisibleDevices     = "NVIDIA_VISIBLE_DEVICES"
	EnvDriverCapabilities = "NVIDIA_DRIVER_CAPABILITIES"
	EnvFraction           = "GPUSLICE_FRACTION" // the slice as a share of the device's total
)

// OwnPrefixes are the beginnings of variable names that belong to gpuslice in a sliced pod, for people.
const OwnPrefixes = "GPUSLICE_, CUDA_MPS_, NVIDIA_GPU_MEMORY_"

// IsOwnVariable reports whether a variable of this name belongs to gpuslice in a sliced pod.
func IsOwnVariable(name string) bool {
	for prefix := range strings.SplitSeq(OwnPrefixes, ", ") {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Variables by which NVIDIA's container runtime gives a container its devices. By default the runtime obeys them in any
// pod, and CUDA images say "all" by themselves. So they are nobody's to choose: a container with a GPU has none (the
// device plugin's value, which the kubelet brings, must not meet another), every other container has "void".
const (
	EnvIMEXChannels = "NVIDIA_IMEX_CHANNELS" // memory of other nodes
	// EnvCUDAVersion alone means "all" to the runtime: it takes the image for one from before there was a variable.
	EnvCUDAVersion = "CUDA_VERSION"
	NoDevices      = "void"
)

// NamesDevices reports whether the runtime reads devices from a variable of this name.
func NamesDevices(name string) bool { return name == EnvVisibleDevices || name == EnvIMEXChannels }
