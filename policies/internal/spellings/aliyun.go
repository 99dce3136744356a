package spellings

// aliyun counts GiB of all its cards together; the number of cards is a label of the pod.
func aliyun() Spelling {
	return Spelling{
		Name: "aliyun", System: "Aliyun gpushare", Doc: "aliyun.com/gpu-mem: 8 means 8 GiB, divided among aliyun.com/gpu-count cards",
		Resources: map[string]reading{
			"aliyun.com/gpu-mem":   mebibytes(1024),
			"aliyun.com/gpu-count": devices,
		},
		Words:    map[string]reading{"aliyun.com/gpu-count": devices},
		Unit:     1024,
		complete: (*collected).divide,
	}
}
