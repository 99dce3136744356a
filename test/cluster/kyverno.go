package cluster

import "fmt"

// StartKyverno runs Kyverno's admission controller, as the administrator, until Stop, and returns the address on which it answers
// reviews. It keeps its certificate, its ConfigMaps and its Lease in the namespace, and looks there for a Deployment of its own;
// all are named kyverno, the ConfigMap of its metrics kyverno-metrics, its Service kyverno-svc.
func (s *APIServer) StartKyverno(namespace string) (reviews string, err error) {
	ports, err := freePorts(1)
	if err != nil {
		return "", err
	}
	env := []string{"INIT_CONFIG=kyverno", "METRICS_CONFIG=kyverno-metrics",
		"KYVERNO_NAMESPACE=" + namespace, "KYVERNO_SERVICEACCOUNT_NAME=kyverno",
		"KYVERNO_DEPLOYMENT=kyverno", "KYVERNO_POD_NAME=kyverno", "KYVERNO_SVC=kyverno-svc"}
	err = s.startWith(env, "kyverno", "kyverno", "--kubeconfig="+s.Kubeconfig,
		"--webhookServerHost=127.0.0.1", fmt.Sprintf("--webhookServerPort=%d", ports[0]),
		"--caSecretName=kyverno-ca", "--tlsSecretName=kyverno-tls", "--disableMetrics",
		"--controllerRuntimeMetricsAddress=0", "--admissionReports=false")
	return fmt.Sprintf("127.0.0.1:%d", ports[0]), err
}
