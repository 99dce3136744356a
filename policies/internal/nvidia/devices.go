package nvidia

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
