package spellings

import "github.com/gpuslice/gpuslice/policies/api"

// libraryMode reads how HAMi's library and Volcano divide a GPU: by the library itself, or by none that is named, any strategy does.
func libraryMode(v value, into *collected) error {
	if v.text == "" || v.text == "hami-core" {
		return nil
	}
	return strategy("hami-core, mig, mps", map[string]api.StrategyName{"mig": "mig", "mps": "mps"})(v, into)
}

// hami counts MiB and hundredths of each GPU.
func hami() Spelling {
	return Spelling{
		Name: "hami", System: "HAMi", Doc: "nvidia.com/gpumem: 3000 means 3000 MiB of each GPU",
		Resources: map[string]reading{
			"nvidia.com/gpumem":            mebibytes(1),
			"nvidia.com/gpumem-percentage": percent(oneDevice),
			"nvidia.com/gpucores":          cores(oneDevice),
			"nvidia.com/priority":          unread("nvidia.com/priority"),
		},
		Words: unreadNames(map[string]reading{"nvidia.com/vgpu-mode": libraryMode}, "nvidia.com/use-gputype",
			"nvidia.com/nouse-gputype", "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"),
		Schedulers: []string{"hami-scheduler"},
		Ignore:     "hami.io/webhook: ignore",
	}
}
