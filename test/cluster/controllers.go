package cluster

import (
	"context"
	"path/filepath"
)

// Controller is a program of another project that makes pods of its own objects, or holds those of others. The module below modules/
// that has its name requires its module.
type Controller struct {
	Name, Module string
	Package      string // below the module
}

// Target returns the target with the program, which has the controller's name.
func (c Controller) Target() Target {
	return Target{name: c.Name, module: c.Name, packages: []string{c.Module + c.Package}}
}

// CRDs returns the CustomResourceDefinitions in folders of the module.
func (c Controller) CRDs(ctx context.Context, folders string) ([][]byte, error) {
	return crds(ctx, c.Name, c.Module, folders)
}

// Folder returns the path of a folder of the module.
func (c Controller) Folder(ctx context.Context, below string) (string, error) {
	dir, err := moduleFolder(ctx, c.Name, c.Module)
	return filepath.Join(dir, below), err
}

// StartController runs the program as the administrator, until Stop.
func (s *APIServer) StartController(c Controller, env []string, args ...string) error {
	return s.startWith(append(env, "KUBECONFIG="+s.Kubeconfig), c.Name, c.Name, args...)
}
