package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gpuslice/gpuslice/test/cluster/box"
)

// user is somebody whom the API server knows by a static token.
type user struct{ name, group, token string }

// Users of the cluster's own parts.
const (
	controllersUser = "system:kube-controller-manager"
	schedulerUser   = "system:kube-scheduler"
	kubeletUser     = "system:node:" + box.NodeName
)

// components are the users of every cluster; the first is its administrator.
func components() []user {
	return []user{
		{"admin", "system:masters", randomToken()},
		{controllersUser, "", randomToken()},
		{schedulerUser, "", randomToken()},
		{kubeletUser, "system:nodes", randomToken()},
	}
}

// writeTokens writes the file that --token-auth-file takes.
func writeTokens(path string, users []user) error {
	var text strings.Builder
	for i, u := range users {
		fmt.Fprintf(&text, "%s,%s,%d,%q\n", u.token, u.name, i, u.group)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return nil
}

// restConfig returns a client configuration without client-side throttling.
func restConfig(server, caFile, token string) *rest.Config {
	return &rest.Config{Host: server, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: caFile}}
}

// WriteKubeconfig writes config, which authenticates by token, as a kubeconfig file for programs of their own.
func WriteKubeconfig(path string, config *rest.Config) error {
	c := clientcmdapi.NewConfig()
	c.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.CAFile}
	c.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	c.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "user"}
	c.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// WriteKubectl writes an executable named kubectl into the folder dir (see WriteProgram) and returns its path.
func (s *APIServer) WriteKubectl(dir string) (string, error) {
	return s.WriteProgram(dir, "kubectl", s.bin["kubectl"])
}

// WriteProgram writes an executable into the folder dir that runs the program at path where it reaches this cluster, as its
// administrator unless KUBECONFIG is set, from any shell, for as long as the cluster runs; for a node's cluster it needs nsenter.
// It returns the executable's path.
func (s *APIServer) WriteProgram(dir, name, program string) (string, error) {
	enter := ""
	if home := box.Dir(); home != "" {
		enter = fmt.Sprintf("nsenter --net=/proc/$(cat %s)/ns/net ", quote(box.PIDFile(home)))
	}
	path := filepath.Join(dir, name)
	text := fmt.Sprintf("#!/bin/sh\n[ -n \"$KUBECONFIG\" ] || export KUBECONFIG=%s\nexec %s%s \"$@\"\n",
		quote(s.Kubeconfig), enter, quote(program))
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return path, nil
}

// Program returns the path of a program of this cluster, as kubectl.
func (s *APIServer) Program(name string) string { return s.bin[name] }

// Kubectl runs kubectl as the administrator and returns its standard output; its error has its standard error.
func (s *APIServer) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.bin["kubectl"], append([]string{"--kubeconfig=" + s.Kubeconfig}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// quote makes one word of text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// CA returns the certificate of this cluster's authority, for a webhook configuration's caBundle.
func (s *APIServer) CA() []byte { return s.pki.pem }

// ServingCertificate returns a TLS configuration with a certificate for hosts, signed by CA. name must be
// new to this cluster.
func (s *APIServer) ServingCertificate(name string, hosts ...string) (*tls.Config, error) {
	if err := s.pki.server(name, hosts...); err != nil {
		return nil, err
	}
	cert, err := tls.LoadX509KeyPair(s.pki.path(name+".crt"), s.pki.path(name+".key"))
	if err != nil {
		return nil, fmt.Errorf("load certificate %s: %w", name, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}
