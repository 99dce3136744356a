package strategies

// nvidiaPlugin is the daemon of NVIDIA's device plugin, which brings pipe, shm and the pipe's variable in its Allocate
// answer.
func nvidiaPlugin() Provider {
	return Provider{
		Name:           "nvidia-device-plugin",
		Plugin:         "NVIDIA's device plugin",
		Daemon:         "NVIDIA's MPS",
		LabeledBy:      LabelsDiscovery,
		HoldsToReplica: true,
		Pipe:           func(_ MPSSpec, resource string) string { return "/mps/" + resource + "/pipe" },
	}
}
