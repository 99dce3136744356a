package fakegpu

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// Library is the name of the file that Build makes: the name that programs load.
	Library = "libnvidia-ml.so.1"
	// CUDALibrary is the name of the file that Build makes beside it: CUDA's driver API, as far as programs hold memory by it.
	CUDALibrary = "libcuda.so.1"
	// ConfigVariable names the environment variable with a library's config, or its path.
	ConfigVariable = "GPUSLICE_FAKE_GPU_CONFIG"
	// ConfigPath is where the config is read if the variable is not set: a file, or a folder
	// with a file "config" in it.
	ConfigPath = "/etc/gpuslice-fake-gpu"
	// NodeVariable names the environment variable with the path of the node's /proc.
	NodeVariable = "GPUSLICE_FAKE_GPU"
	// NodePath is where the node's /proc is looked for if the variable is not set.
	NodePath = "/run/gpuslice-fake-gpu/proc"
)

// ErrNoCompiler is wrapped by Build's error where there is no gcc.
var ErrNoCompiler = errors.New("gcc is not in PATH (Debian: apt-get install gcc libc6-dev)")

//go:embed lib/*.c lib/*.h
var sources embed.FS

// function is a declaration in NVML's header.
var function = regexp.MustCompile(`DECLDIR\s+(nvml\w+)\s*\(`)

// Build makes the library, and CUDALibrary in the same folder, somewhere under dir, or finds it there if it was made from
// the same sources before, and returns its absolute path. An empty dir is the user's cache. Functions of NVML's header that
// are not imitated answer NOT_SUPPORTED; those named by without, CUDA's too, are not in the libraries
// at all, as in an older driver's.
func Build(ctx context.Context, dir string, without ...string) (string, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", fmt.Errorf("build the fake NVML library: %w", ErrNoCompiler)
	}
	files, err := parts(ctx, without)
	if err != nil {
		return "", fmt.Errorf("build the fake NVML library: %w", err)
	}
	folder, err := place(dir, "fakegpu-"+digest(files))
	if err != nil {
		return "", fmt.Errorf("build the fake NVML library: %w", err)
	}
	library := filepath.Join(folder, Library)
	if _, err := os.Stat(library); err == nil {
		return library, nil
	}
	if err := compile(ctx, gcc, files, folder); err != nil {
		return "", fmt.Errorf("build the fake NVML library: %w", err)
	}
	return library, nil
}

// BuildTenant makes the program of package tenant in dir and returns its path.
func BuildTenant(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "tenant")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "github.com/gpuslice/gpuslice/test/fakegpu/tenant")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tenant: %w\n%s", err, output)
	}
	return program, nil
}

// BuildForTests is Build in the user's cache, and BuildTenant in a folder of its own, which the caller removes.
func BuildForTests(ctx context.Context) (library, tenant string, err error) {
	if library, err = Build(ctx, ""); err != nil {
		return "", "", err
	}
	dir, err := os.MkdirTemp("", "tenant")
	if err != nil {
		return "", "", err
	}
	tenant, err = BuildTenant(ctx, dir)
	return library, tenant, err
}

func place(dir, name string) (string, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(cache, "gpuslice")
	}
	return filepath.Abs(filepath.Join(dir, name))
}

// compile builds aside and moves the result into place, so that two builds at once
// do no harm and nobody loads half a library.
func compile(ctx context.Context, gcc string, files map[string]string, folder string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(folder), ".fakegpu-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var both []string // what the libraries have in common
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(work, name), []byte(files[name]), 0o644); err != nil {
			return err
		}
		if filepath.Ext(name) == ".c" && name != cudaSource {
			both = append(both, name)
		}
	}
	if err := link(ctx, gcc, work, Library, "exports", both); err != nil {
		return err
	}
	if err := link(ctx, gcc, work, CUDALibrary, "exports-cuda", append(both, cudaSource)); err != nil {
		return err
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	if err := os.Rename(work, folder); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// cudaSource is in CUDALibrary alone.
const cudaSource = "cuda.c"

// link makes one library of sources, all in the folder.
func link(ctx context.Context, gcc, folder, library, exports string, sources []string) error {
	args := []string{"-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations", "-shared", "-fPIC", "-pthread",
		"-Wl,-soname," + library, "-Wl,--version-script=" + exports, "-o", library}
	cmd := exec.CommandContext(ctx, gcc, append(args, sources...)...)
	cmd.Dir = folder
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run gcc: %w\n%s", err, said)
	}
	return nil
}

// parts are the files that gcc is given.
func parts(ctx context.Context, without []string) (map[string]string, error) {
	header, err := readHeader(ctx)
	if err != nil {
		return nil, err
	}
	files := map[string]string{"nvml.h": header, "stubs.c": stubs(header),
		"exports": exports("nvml*", without), "exports-cuda": exports("cu*", without)}
	entries, err := sources.ReadDir("lib")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := sources.ReadFile("lib/" + entry.Name())
		if err != nil {
			return nil, err
		}
		files[entry.Name()] = string(text)
	}
	return files, nil
}

// readHeader reads the place of the header's package from the go command, in the folder that the caller works in: within this
// module, or one that requires go-nvml. Of a module that nobody has downloaded yet the command prints no place.
func readHeader(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-find", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml")
	var said strings.Builder
	cmd.Stderr = &said
	folder, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find go-nvml: %w\n%s", err, said.String())
	}
	header, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "nvml.h"))
	if err != nil {
		return "", fmt.Errorf("read NVML's header: %w", err)
	}
	return string(header), nil
}

// stubs is a weak function for each name of the header: one that is imitated wins.
func stubs(header string) string {
	var names []string
	for _, m := range function.FindAllStringSubmatch(header, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	var text strings.Builder
	text.WriteString("int fake_stub(const char *function);\n")
	for _, name := range slices.Compact(names) {
		if name != "nvmlErrorString" {
			fmt.Fprintf(&text, "__attribute__((weak)) int %s(void) { return fake_stub(\"%s\"); }\n", name, name)
		}
	}
	return text.String()
}

// exports is a linker script that shows the functions of a pattern but those left out.
func exports(shown string, without []string) string {
	hidden := strings.Join(append(slices.Clone(without), "*"), "; ")
	return "{ global: " + shown + "; local: " + hidden + "; };\n"
}

func digest(files map[string]string) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(sum, "%s %d\n%s", name, len(files[name]), files[name])
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:16]
}
