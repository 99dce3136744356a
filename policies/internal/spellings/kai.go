package spellings

// kai reads the annotations of KAI and of Run:ai, which are the same.
func kai() Spelling {
	return Spelling{
		Name: "kai", System: "KAI or Run:ai", Doc: "annotation gpu-memory: 4000 means 4000 MiB, gpu-fraction: 0.25 a fourth of one GPU",
		Words: unreadNames(map[string]reading{
			"gpu-memory":               mebibytes(1),
			"gpu-memory-limit":         limitMebibytes,
			"gpu-fraction":             fraction,
			"gpu-fraction-num-devices": devices,
			"gpu-fraction-container-name": func(v value, into *collected) error {
				into.Container = v.text
				return nil
			},
		}, "gpu-fraction-limit"),
		Schedulers:     []string{"kai-scheduler", "runai-scheduler"},
		FirstContainer: true,
	}
}
