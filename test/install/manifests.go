package install

import (
	"context"
	"fmt"
	"regexp"

	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/deploy"
)

var goMemLimitEntry = regexp.MustCompile(`- name: GOMEMLIMIT\n +value: (\S+)`)

// goMemLimit returns the Deployment's GOMEMLIMIT as an environment entry.
func goMemLimit() (string, error) {
	const name = "40-deployment.yaml"
	manifest, err := deploy.Files.ReadFile(name)
	if err != nil {
		return "", err
	}
	found := goMemLimitEntry.FindSubmatch(manifest)
	if found == nil {
		return "", fmt.Errorf("%s has no GOMEMLIMIT", name)
	}
	return "GOMEMLIMIT=" + string(found[1]), nil
}

// Manifest applies a file of package deploy, changed by each of changes.
func (a *Applier) Manifest(ctx context.Context, name string, changes ...func([]byte) []byte) error {
	manifest, err := deploy.Files.ReadFile(name)
	if err != nil {
		return err
	}
	for _, change := range changes {
		manifest = change(manifest)
	}
	if err := a.Apply(ctx, manifest); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Manifests applies files of package deploy as they are, and returns what applies others.
func Manifests(ctx context.Context, config *rest.Config, names ...string) (*Applier, error) {
	applier, err := NewApplier(config)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := applier.Manifest(ctx, name); err != nil {
			return nil, err
		}
	}
	return applier, nil
}
