package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecord is about the file as the kubelet reads it: in single quotes, and without the variable where it cannot hold it.
func TestRecord(t *testing.T) {
	t.Parallel()
	const left = "# gpuslice: PYTHONPATH of the image cannot be written in this file, and stays as it is\n"
	for name, tt := range map[string]struct{ value, want string }{
		"of none":              {"", "PYTHONPATH='/gpuslice/shim'\n"},
		"of an empty one":      {"PYTHONPATH=", "PYTHONPATH='/gpuslice/shim'\n"},
		"of one":               {"PYTHONPATH=/workspace:/app lib", "PYTHONPATH='/gpuslice/shim:/workspace:/app lib'\n"},
		"of an empty entry":    {"PYTHONPATH=:/app:", "PYTHONPATH='/gpuslice/shim::/app:'\n"},
		"of a dollar sign":     {`PYTHONPATH=$(A)\"$B`, `PYTHONPATH='/gpuslice/shim:$(A)\"$B'` + "\n"},
		"of a quote":           {"PYTHONPATH=/it's", left},
		"of two lines":         {"PYTHONPATH=/a\nPATH='/evil'", left},
		"of an end of a line":  {"PYTHONPATH=/a\r", left},
		"of what is no UTF-8":  {"PYTHONPATH=/\xff", left},
		"of what is very long": {"PYTHONPATH=/" + strings.Repeat("a", longestRecord), left},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pythonpath-0")
			env := []string{"PATH=/nowhere"}
			if tt.value != "" {
				env = append(env, tt.value)
			}
			for range 2 { // the kubelet may run it again
				if out, code := started(t, t.TempDir(), env, "--record", file); code != 0 || out != "" {
					t.Fatalf("exit %d, printed %q", code, out)
				}
			}
			got, err := os.ReadFile(file)
			if err != nil || string(got) != tt.want {
				t.Errorf("wrote %q, %v; want %q", got, err, tt.want)
			}
			if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
				t.Errorf("the folder has %v, %v", left, err)
			}
		})
	}
	t.Run("where nothing can be written", func(t *testing.T) {
		t.Parallel()
		out, code := started(t, t.TempDir(), nil, "--record", "/nowhere/pythonpath-0")
		if code != exitCannot || !strings.HasPrefix(out, "gpuslice-exec: record PYTHONPATH: ") {
			t.Errorf("exit %d, printed %q", code, out)
		}
	})
}
