package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpuslice/gpuslice/deploy/images/recipe"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/image"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// Images of a node with gpuslice: its own, in the repository and with the tag, and the tenant's.
const (
	// TenantImage runs test/fakegpu/tenant: a container's args are its steps.
	TenantImage = "gpuslice.test/tenant:v1"

	// Tag is that of gpuslice's images on a node.
	Tag = "test"

	repository = "gpuslice"
)

// Names of what Build leaves in its folder.
const (
	imagesFolder = "images"
	commandFile  = "gpuslice"
	tenantFile   = "tenant"
	standInFile  = "standin"
	mpsFile      = "mps-control"
	libraryFile  = "nvml.so"
	cudaFile     = "cuda.so"
)

// gpusFolder, below the folder of a node, holds what containers see of the simulated GPU, by namespace: its config, and
// the node's processes.
const (
	gpusFolder   = "gpus"
	configFolder = "config"
	nodeFolder   = "node"
)

// Build makes what StartNode needs in dir, from this checkout: the images that users get, and programs for tests.
// It is for the time before a box is entered.
func Build(ctx context.Context, dir string) error {
	for file, p := range map[string]cluster.Program{
		tenantFile:  {Package: "./test/fakegpu/tenant"},
		standInFile: {Package: "./test/install/standin"},
		commandFile: {Package: "./cmd/gpuslice"},
		mpsFile:     {Package: "./test/install/mpscontrol"},
	} {
		if err := cluster.Compile(ctx, p, filepath.Join(dir, file)); err != nil {
			return err
		}
	}
	if err := buildImages(ctx, filepath.Join(dir, imagesFolder)); err != nil {
		return err
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

// buildImages builds gpuslice's images for this machine. With a newer C library they are those of the next release, so a
// test does not fail because Debian fixed it.
func buildImages(ctx context.Context, dir string) error {
	checkout, err := recipe.Checkout()
	if err != nil {
		return err
	}
	cache, environment, err := cluster.BuildSettings()
	if err != nil {
		return err
	}
	_, err = recipe.Build(ctx, recipe.Options{
		Checkout: checkout, Out: dir, Cache: filepath.Join(cache, "images"), Environment: environment,
		Repository: repository, Version: Tag, Newest: true,
		Platforms: []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}},
		Say:       func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	}, recipe.Recipes()...)
	return err
}

// nodeOptions are the options of StartNode, from the files of Build in dir: the images of gpuslice and of the tenant, and
// a GPU whose config is the namespace's own (see GPU).
func nodeOptions(dir string) (cluster.NodeOptions, error) {
	folder := filepath.Join(dir, gpusFolder)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return cluster.NodeOptions{}, fmt.Errorf("make the folder of simulated GPUs: %w", err)
	}
	var images []image.Image
	for _, r := range recipe.Recipes() {
		images = append(images,
			image.Image{Name: repository + "/" + r.Name + ":" + Tag, Archive: filepath.Join(dir, imagesFolder, r.Name+".tar")})
	}
	tenant := image.Image{Name: TenantImage, Entrypoint: []string{"/tenant"}, Files: map[string]string{"/tenant": Tenant(dir)}}
	return cluster.NodeOptions{
		Images: append(images, tenant),
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
func Command(dir string) string { return filepath.Join(dir, commandFile) }
