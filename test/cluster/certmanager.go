package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// CertManagerCRDs returns cert-manager's own CustomResourceDefinitions, from the module that CertManager is built from.
func CertManagerCRDs(ctx context.Context) ([][]byte, error) {
	modules, err := modulesFolder()
	if err != nil {
		return nil, err
	}
	list := exec.CommandContext(ctx, "go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	list.Dir = filepath.Join(modules, "certmanager")
	dir, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("find cert-manager's module: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("find cert-manager's CRDs: %d files, %w", len(files), err)
	}
	var out [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read CRD: %w", err)
		}
		out = append(out, text)
	}
	return out, nil
}

// StartCertManager runs cert-manager's controllers and cainjector, as the administrator, until Stop. gates are feature gates
// of its own.
func (s *APIServer) StartCertManager(gates string) error {
	return s.start("certmanager", "--kubeconfig="+s.Kubeconfig, "--feature-gates="+gates)
}
