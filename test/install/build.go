package install

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/image"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// Images of a node with gpuslice: its own, gpuslice/NAME with the tag, and the tenant's.
const (
	// TenantImage runs test/fakegpu/tenant: a container's args are its steps.
	TenantImage = "gpuslice.test/tenant:v1"

	// Tag is that of gpuslice's images on a node.
	Tag = "test"
)

// Names of what Build leaves in its folder.
const (
	programsFolder = "programs"
	tenantFile     = "tenant"
	standInFile    = "standin"
	mpsFile        = "mps-control"
	libraryFile    = "nvml.so"
	cudaFile       = "cuda.so"
)

// gpusFolder, below the folder of a node, holds what containers see of the simulated GPU, by namespace: its config, and
// the node's processes.
const (
	gpusFolder   = "gpus"
	configFolder = "config"
	nodeFolder   = "node"
)

// Build makes what StartNode needs in dir, from this checkout: the programs that users get, and programs for tests.
// It is for the time before a box is entered.
func Build(ctx context.Context, dir string) error {
	for file, p := range map[string]cluster.Program{
		tenantFile:  {Package: "./test/fakegpu/tenant"},
		standInFile: {Package: "./test/install/standin"},
		mpsFile:     {Package: "./test/install/mpscontrol"},
	} {
		if err := cluster.Compile(ctx, p, filepath.Join(dir, file)); err != nil {
			return err
		}
	}
	programs, err := cluster.MakeBuild(ctx, Tag)
	if err != nil {
		return err
	}
	if err := os.Symlink(programs, filepath.Join(dir, programsFolder)); err != nil {
		return fmt.Errorf("place gpuslice's programs: %w", err)
	}
	library, err := fakegpu.Build(ctx, "")
	if err != nil {
		return err
	}
	if err := os.Symlink(library, filepath.Join(dir, libraryFile)); err != nil {
		return fmt.Errorf("place the simulated GPU's library: %w", err)
	}
	if err := os.Symlink(filepath.Join(filepath.Dir(library), fakegpu.CUDALibrary), filepath.Join(dir, cudaFile)); err != nil {
		return fmt.Errorf("place the simulated GPU's libcuda: %w", err)
	}
	return nil
}

// images are gpuslice's, of the programs of Build in dir and this machine's C library.
func images(dir string) (all []image.Image, err error) {
	for name, programs := range map[string][]string{
		"webhook": {"gpuslice-webhook"}, "agent": {"gpuslice-agent"}, "cli": {"gpuslice"},
		"guard": {
			"gpuslice-guard", "gpuslice-exec",
			"gpuslice-prove",
		},
	} {
		i := image.Image{Name: "gpuslice/" + name + ":" + Tag, Entrypoint: []string{"/" + programs[0]}, User: "65532:65532",
			Files: map[string]string{}}
		for _, p := range programs {
			files, err := image.Program("/"+p, filepath.Join(dir, programsFolder, p))
			if err != nil {
				return nil, err
			}
			maps.Copy(i.Files, files)
		}
		all = append(all, i)
	}
	return all, nil
}

// nodeOptions are the options of StartNode, from the files of Build in dir: the images of gpuslice and of the tenant, and
// a GPU whose config is the namespace's own (see GPU).
func nodeOptions(dir string) (cluster.NodeOptions, error) {
	folder := filepath.Join(dir, gpusFolder)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return cluster.NodeOptions{}, fmt.Errorf("make the folder of simulated GPUs: %w", err)
	}
	own, err := images(dir)
	if err != nil {
		return cluster.NodeOptions{}, err
	}
	tenant := image.Image{Name: TenantImage, Entrypoint: []string{"/tenant"}, Files: map[string]string{"/tenant": Tenant(dir)}}
	return cluster.NodeOptions{
		Images: append(own, tenant),
		GPU: &cluster.GPU{
			Library: filepath.Join(dir, libraryFile),
			Mounts: []cluster.Mount{
				{Source: filepath.Join(folder, "{namespace}", configFolder), Destination: fakegpu.ConfigPath},
				{Source: filepath.Join(folder, "{namespace}", nodeFolder), Destination: filepath.Dir(fakegpu.NodePath)},
				{Source: filepath.Join(dir, cudaFile),
					Destination: filepath.Join(filepath.Dir(cluster.LibraryPath()), fakegpu.CUDALibrary), Driver: true},
				// As NVIDIA's toolkit does for a container that computes.
				{Source: filepath.Join(dir, mpsFile), Destination: "/usr/bin/nvidia-cuda-mps-control", Driver: true},
			},
		},
	}, nil
}

// Tenant is the path of the tenant's program among what Build left in dir.
func Tenant(dir string) string { return filepath.Join(dir, tenantFile) }

// Command is the path of the command line among what Build left in dir.
func Command(dir string) string { return filepath.Join(dir, programsFolder, "gpuslice") }
