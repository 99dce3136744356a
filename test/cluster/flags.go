package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// etcdFlags are for an etcd that need not survive a power failure.
func etcdFlags(dir string, l layout) []string {
	clientURL, peerURL := fmt.Sprintf("http://127.0.0.1:%d", l.etcd), fmt.Sprintf("http://127.0.0.1:%d", l.peer)
	return []string{
		"--data-dir=" + filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=default=" + peerURL,
	}
}

// apiServerFlags also writes the files that they name.
func (s *APIServer) apiServerFlags(l layout) ([]string, error) {
	flags := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", l.etcd),
		"--bind-address=" + l.bind, "--advertise-address=" + l.host, fmt.Sprintf("--secure-port=%d", l.port),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file=" + s.pki.path("apiserver.crt"), "--tls-private-key-file=" + s.pki.path("apiserver.key"),
		"--client-ca-file=" + s.pki.path("ca.crt"), "--token-auth-file=" + s.pki.path("tokens.csv"),
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + s.pki.path("accounts.pub"),
		"--service-account-signing-key-file=" + s.pki.path("accounts.key"),
		// Endpoints of Services are dialled directly; ClusterIPs would need kube-proxy.
		"--enable-aggregator-routing=true",
	}
	if l.node {
		return append(flags,
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
			"--kubelet-client-certificate="+s.pki.path("kubelet-client.crt"), "--kubelet-client-key="+s.pki.path("kubelet-client.key"),
			// No DNS knows the node's name.
			"--kubelet-certificate-authority="+s.pki.path("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		), nil
	}
	selector, err := s.writeEgressSelector()
	return append(flags, "--authorization-mode=RBAC", "--endpoint-reconciler-type=none", "--egress-selector-config-file="+selector), err
}

// writeEgressSelector writes the file that sends connections to Services through the egress proxy.
func (s *APIServer) writeEgressSelector() (string, error) {
	path := filepath.Join(s.Dir, "egress.yaml")
	text := fmt.Sprintf(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %q}}}
`, s.egress.listener.Addr())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write egress selector: %w", err)
	}
	return path, nil
}

func (s *APIServer) startControllerManager(flags ...string) error {
	return s.start("kube-controller-manager", append(append(s.controllerFlags(controllersUser), flags...),
		"--use-service-account-credentials", "--service-account-private-key-file="+s.pki.path("accounts.key"),
		"--root-ca-file="+s.pki.path("ca.crt"),
		// Its default is a folder of the machine, which it makes.
		"--flex-volume-plugin-dir="+filepath.Join(s.Dir, "volume-plugins"))...)
}

func (s *APIServer) startScheduler() error {
	return s.start("kube-scheduler", s.controllerFlags(schedulerUser)...)
}

// controllerFlags are those that controller manager and scheduler have in common.
func (s *APIServer) controllerFlags(user string) []string {
	config := s.kubeconfigOf(user)
	return append([]string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--leader-elect=false", "--secure-port=0",
		// At the default of 20 requests a second the controllers' own start takes four seconds longer.
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	}, s.gates...)
}
