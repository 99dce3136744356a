package cluster

// StartKarpenter runs Karpenter with its kwok provider, as the administrator, until Stop. instanceTypes is a file of what the provider
// sells. Overlays are on.
func (s *APIServer) StartKarpenter(instanceTypes string) error {
	env := []string{"KUBECONFIG=" + s.Kubeconfig, "SYSTEM_NAMESPACE=kube-system",
		"DISABLE_LEADER_ELECTION=true", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0",
		"FEATURE_GATES=NodeOverlay=true", "INSTANCE_TYPES_FILE_PATH=" + instanceTypes, "LOG_LEVEL=debug"}
	return s.startWith(env, "karpenter", "karpenter")
}
