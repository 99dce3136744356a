package recipe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
)

// library reads one of this machine's.
func library(t *testing.T, name string) oci.File {
	t.Helper()
	for _, pattern := range []string{"/lib/*-linux-gnu/", "/lib64/", "/usr/lib64/", "/usr/lib/"} {
		found, err := filepath.Glob(pattern + name)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			content, err := os.ReadFile(found[0])
			if err != nil {
				t.Fatal(err)
			}
			return oci.Program(content)
		}
	}
	t.Skipf("this machine has no %s", name)
	return oci.File{}
}

func TestSymbols(t *testing.T) {
	t.Parallel()
	t.Run("a program that its libraries cannot run is found", func(t *testing.T) {
		t.Parallel()
		libc, libm := library(t, "libc.so.6"), library(t, "libm.so.6")
		program, err := os.ReadFile("/bin/cat")
		if err != nil {
			t.Skipf("needs a program that calls the C library: %v", err)
		}
		for _, tt := range []struct {
			name      string
			libraries map[string]oci.File
			wantErr   string
		}{
			{"its own library", map[string]oci.File{"/lib/libc.so.6": libc}, ""},
			{"no library", nil, "libc.so.6, which its image does not have"},
			{"one that lacks what it calls", map[string]oci.File{"/lib/libc.so.6": libm}, "needs a newer C library"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				err := runs(program, tt.libraries)
				if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
					t.Errorf("got %v, want %q", err, tt.wantErr)
				}
			})
		}
	})
}
