package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// CertManagerCRDs returns cert-manager's own CustomResourceDefinitions, from the module that CertManager is built from.
func CertManagerCRDs(ctx context.Context) ([][]byte, error) {
	return crds(ctx, "certmanager", "github.com/cert-manager/cert-manager", "deploy/crds")
}

// KyvernoCRDs returns Kyverno's own CustomResourceDefinitions, from the module that Kyverno is built from.
func KyvernoCRDs(ctx context.Context) ([][]byte, error) {
	return crds(ctx, "kyverno", "github.com/kyverno/kyverno", "config/crds/*")
}

// KarpenterCRDs returns Karpenter's own CustomResourceDefinitions, and those of its kwok provider.
func KarpenterCRDs(ctx context.Context) ([][]byte, error) {
	var all [][]byte
	for _, folder := range []string{"pkg/apis/crds", "kwok/apis/crds"} {
		some, err := crds(ctx, "karpenter", "sigs.k8s.io/karpenter", folder)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// moduleFolder returns the folder of a module that one below modules/ requires, having downloaded it.
func moduleFolder(ctx context.Context, by, module string) (string, error) {
	modules, err := modulesFolder()
	if err != nil {
		return "", err
	}
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	download.Dir = filepath.Join(modules, by)
	text, err := download.Output()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", module, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(text, &found); err != nil {
		return "", fmt.Errorf("find %s: %w", module, err)
	}
	return found.Dir, nil
}

// crds are the files in the folders of a module that one below modules/ requires.
func crds(ctx context.Context, by, module, folders string) ([][]byte, error) {
	dir, err := moduleFolder(ctx, by, module)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, folders, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("find CRDs of %s: %d files, %w", module, len(files), err)
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
