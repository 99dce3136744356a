package spellings

// vgpuManager counts MiB and hundredths of each GPU.
func vgpuManager() Spelling {
	return Spelling{
		Name: "vgpu-manager", System: "vgpu-manager", Doc: "nvidia.com/vgpu-memory: 8000 means 8000 MiB of each of nvidia.com/vgpu-number GPUs",
		Resources: map[string]reading{
			"nvidia.com/vgpu-number": devices,
			"nvidia.com/vgpu-memory": mebibytes(1),
			"nvidia.com/vgpu-cores":  cores(oneDevice),
		},
		Unit: 1,
		Words: unreadNames(map[string]reading{}, "nvidia.com/include-gpu-type",
			"nvidia.com/exclude-gpu-type", "nvidia.com/include-gpu-uuid", "nvidia.com/exclude-gpu-uuid"),
	}
}
