package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/image"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// Images of a node with gpuslice.
const (
	webhookImage = "gpuslice/webhook:" + Tag
	guardImage   = "gpuslice/guard:" + Tag
	// TenantImage runs test/fakegpu/tenant: a container's args are its steps.
	TenantImage = "gpuslice.test/tenant:v1"

	// Tag is that of gpuslice's images on a node.
	Tag = "test"
)

// Names of what Build leaves in its folder.
const (
	webhookFile = "webhook"
	guardFile   = "guard"
	tenantFile  = "tenant"
	commandFile = "gpuslice"
	mpsFile     = "mps-control"
	libraryFile = "nvml.so"
)

// gpusFolder, below the folder of a node, holds what containers see of the simulated GPU, by namespace: its config, and
// the node's processes.
const (
	gpusFolder   = "gpus"
	configFolder = "config"
	nodeFolder   = "node"
)

// Build compiles what StartNode needs into dir, from this checkout. It is for the time before a box is entered.
func Build(ctx context.Context, dir string) error {
	for file, p := range map[string]cluster.Program{
		webhookFile: {Package: "./cmd/webhook"},
		guardFile:   {Package: "./cmd/guard", CGO: true},
		tenantFile:  {Package: "./test/fakegpu/tenant"},
		commandFile: {Package: "./cmd/gpuslice"},
		mpsFile:     {Package: "./test/install/mpscontrol"},
	} {
		if err := cluster.Compile(ctx, p, filepath.Join(dir, file)); err != nil {
			return err
		}
	}
	library, err := fakegpu.Build(ctx, "")
	if err != nil {
		return err
	}
	if err := os.Symlink(library, filepath.Join(dir, libraryFile)); err != nil {
		return fmt.Errorf("place the simulated GPU's library: %w", err)
	}
	return nil
}

// nodeOptions are what a node needs for StartNode, from what Build left in dir: the images of gpuslice and of the tenant, and
// a GPU whose config is the namespace's own (see GPU).
func nodeOptions(dir string) (cluster.NodeOptions, error) {
	guard, err := image.Program("/gpuslice-guard", filepath.Join(dir, guardFile))
	if err != nil {
		return cluster.NodeOptions{}, err
	}
	folder := filepath.Join(dir, gpusFolder)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return cluster.NodeOptions{}, fmt.Errorf("make the folder of simulated GPUs: %w", err)
	}
	single := func(name, path, file, user string) image.Image {
		return image.Image{Name: name, Entrypoint: []string{path}, Files: map[string]string{path: filepath.Join(dir, file)}, User: user}
	}
	return cluster.NodeOptions{
		Images: []image.Image{
			single(webhookImage, "/gpuslice-webhook", webhookFile, "65532:65532"),
			{Name: guardImage, Entrypoint: []string{"/gpuslice-guard"}, Files: guard},
			single(TenantImage, "/tenant", tenantFile, ""),
		},
		GPU: &cluster.GPU{
			Library: filepath.Join(dir, libraryFile),
			Mounts: []cluster.Mount{
				{Source: filepath.Join(folder, "{namespace}", configFolder), Destination: fakegpu.ConfigPath},
				{Source: filepath.Join(folder, "{namespace}", nodeFolder), Destination: filepath.Dir(fakegpu.NodePath)},
				// As NVIDIA's toolkit does for a container that computes.
				{Source: filepath.Join(dir, mpsFile), Destination: "/usr/bin/nvidia-cuda-mps-control"},
			},
		},
	}, nil
}

// Tenant is the path of the tenant's program among what Build left in dir.
func Tenant(dir string) string { return filepath.Join(dir, tenantFile) }

// Command is the path of the command line among what Build left in dir.
func Command(dir string) string { return filepath.Join(dir, commandFile) }
