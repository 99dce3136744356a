package spellings

import "cmp"

// koordinator counts the total of all devices: gpu.shared is the number of devices that share it.
func koordinator() Spelling {
	return Spelling{
		Name: "koordinator", System: "Koordinator",
		Doc: "koordinator.sh/gpu-memory: 16Gi and gpu-memory-ratio: 50, divided among koordinator.sh/gpu.shared GPUs",
		Resources: map[string]reading{
			"koordinator.sh/gpu": func(v value, into *collected) error {
				return cmp.Or(percent(allDevices)(v, into), cores(allDevices)(v, into))
			},
			"koordinator.sh/gpu-memory":       bytes,
			"koordinator.sh/gpu-memory-ratio": percent(allDevices),
			"koordinator.sh/gpu-core":         cores(allDevices),
			"koordinator.sh/gpu.shared":       devices,
		},
		Schedulers: []string{"koord-scheduler"},
		complete:   (*collected).divide,
	}
}
