// Package nvidia has the names that gpuslice shares with NVIDIA's software: resources, environment variables, and releases of the driver.
package nvidia

// Resources for GPUs.
const (
	SharedGPU      = "nvidia.com/gpu.shared"
	ResourcePrefix = "nvidia.com/" // of GPU resources, and of others
	MIGPrefix      = ResourcePrefix + "mig-"
)

// DRADriver is NVIDIA's driver of dynamic resource allocation.
const DRADriver = "gpu.nvidia.com"
