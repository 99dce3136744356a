package cuda

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHeader compares the declarations with CUDA's header, which its license keeps out of this repository.
func TestHeader(t *testing.T) {
	t.Parallel()
	compared, err := os.ReadFile("testdata/header.c")
	if err != nil {
		t.Fatal(err)
	}
	library, err := os.ReadFile("library.go")
	if err != nil {
		t.Fatal(err)
	}
	loaded := regexp.MustCompile(`"(cu[A-Z]\w+)":`).FindAllStringSubmatch(string(library), -1)
	if len(loaded) < 18 {
		t.Fatalf("library.go loads %d functions, which is too few to be read right", len(loaded))
	}
	for _, m := range loaded {
		if !regexp.MustCompile(`\b` + m[1] + `\b`).Match(compared) {
			t.Errorf("%s is loaded, and not compared", m[1])
		}
	}
	header := cmp.Or(os.Getenv("CUDA_HEADER"), "/usr/local/cuda/include/cuda.h")
	if _, err := os.Stat(header); err != nil {
		t.Skipf("CUDA's header is not there: set CUDA_HEADER to the path of cuda.h (%v)", err)
	}
	args := []string{"-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function",
		"-isystem", filepath.Dir(header), "testdata/header.c"}
	for name, code := range map[string]int{"MULTIPROCESSOR_COUNT": multiprocessorCount, "OUT_OF_MEMORY": OutOfMemory,
		"DEVICE_UNAVAILABLE": DeviceUnavailable, "CLIENT_TERMINATED": ClientTerminated} {
		args = append(args, fmt.Sprintf("-D%s=%d", name, code))
	}
	if out, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput(); err != nil {
		t.Errorf("gcc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
