package spellings

// tkestack counts parts of 256 MiB; a hundred cores are a GPU, and more of them whole GPUs.
func tkestack() Spelling {
	return Spelling{
		Name: "tkestack", System: "tkestack",
		Doc: "tencent.com/vcuda-memory: 30 means 30 times 256 MiB, vcuda-core: 50 half of one GPU's compute",
		Resources: map[string]reading{
			"tencent.com/vcuda-memory": mebibytes(256),
			"tencent.com/vcuda-core":   cores(allDevices),
		},
		complete: func(c *collected) error {
			if c.cores >= oneDevice { // whole GPUs, whatever memory is named
				c.Size.Memory, c.percent = 0, c.cores
			}
			return c.divide()
		},
	}
}
