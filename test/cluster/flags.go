package cluster

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// etcdFlags are for an etcd that need not survive a power failure.
func etcdFlags(dir string, client, peer int) []string {
	clientURL, peerURL := fmt.Sprintf("http://127.0.0.1:%d", client), fmt.Sprintf("http://127.0.0.1:%d", peer)
	return []string{
		"--data-dir=" + filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=default=" + peerURL,
	}
}

// apiServerFlags also writes the file that sends connections to Services through the egress proxy.
func (s *APIServer) apiServerFlags(etcd, port int) ([]string, error) {
	selector := filepath.Join(s.Dir, "egress.yaml")
	text := fmt.Sprintf(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %q}}}
`, s.egress.listener.Addr())
	if err := os.WriteFile(selector, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write egress selector: %w", err)
	}
	return []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", etcd),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file=" + s.pki.path("apiserver.crt"), "--tls-private-key-file=" + s.pki.path("apiserver.key"),
		"--client-ca-file=" + s.pki.path("ca.crt"), "--token-auth-file=" + s.pki.path("tokens.csv"),
		"--authorization-mode=RBAC", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + s.pki.path("accounts.pub"),
		"--service-account-signing-key-file=" + s.pki.path("accounts.key"),
		// Endpoints of Services are dialled directly; ClusterIPs would need kube-proxy.
		"--enable-aggregator-routing=true", "--egress-selector-config-file=" + selector,
	}, nil
}

func (s *APIServer) startControllerManager() error {
	config := s.pki.path("controller-manager.kubeconfig")
	return s.start("kube-controller-manager",
		"--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--use-service-account-credentials", "--service-account-private-key-file="+s.pki.path("accounts.key"),
		"--root-ca-file="+s.pki.path("ca.crt"), "--leader-elect=false", "--secure-port=0",
		// At the default of 20 requests a second its own start takes four seconds longer.
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	)
}

// freePorts returns n loopback ports that were free a moment ago, all different.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find free port: %w", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
