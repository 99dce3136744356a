package vm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/debian"
)

// ErrUnsupported is wrapped by the error of a machine on which there can be no virtual one.
var ErrUnsupported = errors.New("no virtual machine can be run here")

// Packages is a folder with what Debian's packages hold, less what the machine has anyway.
type Packages string

// Fetch returns the packages that every virtual machine needs, and others by their names. What was fetched stays in the
// cache of the test cluster.
func Fetch(ctx context.Context, names ...string) (Packages, error) {
	if runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("%w: it is set up for amd64, and this is %s", ErrUnsupported, runtime.GOARCH)
	}
	names = append(names, "qemu-system-x86", "linux-image-cloud-amd64")
	cache, _, err := cluster.BuildSettings()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, fmt.Sprintf("vm-%x", sha256.Sum256([]byte(strings.Join(names, " "))))[:len("vm-")+16])
	if _, err := os.Stat(root); err == nil {
		return Packages(root), nil
	}
	part, err := os.MkdirTemp(cache, ".vm-")
	if err != nil {
		return "", fmt.Errorf("make folder for packages: %w", err)
	}
	defer os.RemoveAll(part)
	if err := debian.Unpack(ctx, part, names...); err != nil {
		return "", fmt.Errorf("%w: it takes Debian's packages %s: %w", ErrUnsupported, strings.Join(names, ", "), err)
	}
	if err := os.RemoveAll(filepath.Join(part, "lib/modules")); err != nil { // the largest part; nothing loads one
		return "", fmt.Errorf("remove the kernel's modules: %w", err)
	}
	// Two tests that fetch at once do no harm: the second finds the folder of the first.
	if err := os.Rename(part, root); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("keep packages: %w", err)
	}
	return Packages(root), nil
}

// Find returns the path of a file that a package holds, or the machine where it has the package. The path may be a pattern.
func (p Packages) Find(path string) (string, error) {
	for _, root := range []string{string(p), "/"} {
		found, err := filepath.Glob(filepath.Join(root, path))
		if err != nil {
			return "", fmt.Errorf("find %s: %w", path, err)
		}
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%w: neither Debian's packages nor the machine have %s", ErrUnsupported, path)
}

// libraries returns the value of LD_LIBRARY_PATH for a program of the packages.
func (p Packages) libraries() string {
	return filepath.Join(string(p), "usr/lib/x86_64-linux-gnu") + ":" + filepath.Join(string(p), "lib/x86_64-linux-gnu")
}
