package spellings

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
		Words: unreadNames(map[string]reading{}, "nvidia.com/use-gputype",
			"nvidia.com/nouse-gputype", "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"),
		Schedulers: []string{"hami-scheduler"},
		Ignore:     "hami.io/webhook: ignore",
	}
}
