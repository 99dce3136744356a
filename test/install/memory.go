package install

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/test/memoryapi"
)

// InMemory puts the manifests on an API server in memory, and starts the webhook's process beside it. Nobody calls the
// process before an Asker does.
func InMemory(ctx context.Context, server *memoryapi.Server, binary, dir string) (*Process, error) {
	names, err := fs.Glob(deploy.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		b, err := fs.ReadFile(deploy.Files, name)
		if err != nil {
			return nil, err
		}
		objects, err := Objects(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, o := range objects {
			if slices.Contains(notBeside, o.GetKind()) {
				continue
			}
			if err := server.Put(o); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return ReplicaInMemory(ctx, server, binary, dir, "webhook")
}

// ReplicaInMemory starts one more process of the webhook beside an API server in memory that has the manifests.
func ReplicaInMemory(ctx context.Context, server *memoryapi.Server, binary, dir, name string) (*Process, error) {
	return startProcess(ctx, binary, dir, name, server.Config, arguments()...)
}
