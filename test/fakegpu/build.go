package fakegpu

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Library is the name of the file that Build makes, which is the name that
// programs load.
const Library = "libnvidia-ml.so.1"

//go:embed lib/*.c lib/*.h
var sources embed.FS

var (
	// handle is a typedef that go-nvml's header turned into a struct, for cgo.
	handle   = regexp.MustCompile(`typedef struct\s*\{\s*struct (\w+)\s*\*\s*handle;\s*\} (\w+);`)
	function = regexp.MustCompile(`DECLDIR (nvml\w+)`)
)

// ErrNoCompiler is returned by Build where there is no gcc.
var ErrNoCompiler = errors.New("building the fake NVML library needs gcc")

// Build makes the library in dir and returns its path. Functions of the header
// that it does not imitate answer NOT_SUPPORTED; those named by without are not
// there at all, as in an older driver.
func Build(dir string, without ...string) (string, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", ErrNoCompiler
	}
	work, err := os.MkdirTemp("", "fakegpu")
	if err != nil {
		return "", fmt.Errorf("build the fake NVML library: %w", err)
	}
	defer os.RemoveAll(work)
	if err := layOut(work, without); err != nil {
		return "", fmt.Errorf("build the fake NVML library: %w", err)
	}
	library, err := filepath.Abs(filepath.Join(dir, Library))
	if err != nil {
		return "", fmt.Errorf("build the fake NVML library: %w", err)
	}
	cmd := exec.Command(gcc, "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-shared", "-fPIC", "-I.", "-Wl,-soname,"+Library,
		"-Wl,--version-script=exports", "-o", library, "switches.c", "processes.c", "device.c", "mig.c", "stubs.c")
	cmd.Dir = work
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the fake NVML library: %w\n%s", err, said)
	}
	return library, nil
}

// layOut writes the sources, the header with its handles as pointers again, and
// a stub for every other function.
func layOut(work string, without []string) error {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		return fmt.Errorf("find the header of NVML: %w", err)
	}
	header, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "pkg/nvml/nvml.h"))
	if err != nil {
		return fmt.Errorf("read the header of NVML: %w", err)
	}
	files := map[string]string{
		"nvml.h":  handle.ReplaceAllString(string(header), "typedef struct $1 *$2;"),
		"stubs.c": stubs(string(header)),
		"exports": exports(without),
	}
	entries, err := sources.ReadDir("lib")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := sources.ReadFile("lib/" + e.Name())
		if err != nil {
			return err
		}
		files[e.Name()] = string(text)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// stubs is a weak function for every name of the header: one that the library
// imitates wins over it.
func stubs(header string) string {
	var names []string
	for _, m := range function.FindAllStringSubmatch(header, -1) {
		if m[1] != "nvmlErrorString" {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	var text strings.Builder
	text.WriteString("void switches_trace(const char *function);\n")
	for _, name := range slices.Compact(names) {
		fmt.Fprintf(&text, "__attribute__((weak)) int %s(void) { switches_trace(\"stub %s\"); return 3; }\n", name, name)
	}
	return text.String()
}

// exports is a linker script that shows every function but those.
func exports(without []string) string {
	hidden := ""
	for _, name := range without {
		hidden += name + "; "
	}
	return "{ global: nvml*; local: " + hidden + "*; };\n"
}
