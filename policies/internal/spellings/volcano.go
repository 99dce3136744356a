package spellings

// volcano counts MiB and hundredths of each GPU. It is a scheduler of other pods too, so its name stays.
func volcano() Spelling {
	return Spelling{
		Name: "volcano", System: "Volcano", Doc: "volcano.sh/vgpu-memory: 8000 means 8000 MiB of each of volcano.sh/vgpu-number GPUs",
		Resources: map[string]reading{
			"volcano.sh/vgpu-number":            devices,
			"volcano.sh/vgpu-memory":            mebibytes(1),
			"volcano.sh/vgpu-memory-percentage": percent(oneDevice),
			"volcano.sh/vgpu-cores":             cores(oneDevice),
			"volcano.sh/gpu-memory":             mebibytes(1),
			"volcano.sh/gpu-number":             devices,
		},
		Unit:  1,
		Words: unreadNames(map[string]reading{"volcano.sh/vgpu-mode": libraryMode}, "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"),
	}
}
