package cluster

// ClusterAutoscaler is the name that Options.Bin has for the program.
const ClusterAutoscaler = "cluster-autoscaler"

// StartClusterAutoscaler runs Cluster Autoscaler with its kwok provider, as the administrator, until Stop. The provider reads the ConfigMap
// kwok-provider-config of kube-system, from which the node groups follow.
func (s *APIServer) StartClusterAutoscaler(flags ...string) error {
	env := []string{"KUBECONFIG=" + s.Kubeconfig, "KWOK_PROVIDER_MODE=local", "POD_NAMESPACE=kube-system"}
	args := []string{"--kubeconfig=" + s.Kubeconfig, "--cloud-provider=kwok", "--leader-elect=false", "--address=127.0.0.1:0", "--v=4"}
	return s.startWith(env, ClusterAutoscaler, ClusterAutoscaler, append(args, flags...)...)
}
