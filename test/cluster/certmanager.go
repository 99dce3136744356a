package cluster

// StartCertManager runs cert-manager's controllers and cainjector, as the administrator, until Stop. gates are feature gates
// of its own.
func (s *APIServer) StartCertManager(gates string) error {
	return s.start("certmanager", "--kubeconfig="+s.Kubeconfig, "--feature-gates="+gates)
}
