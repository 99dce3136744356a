package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeathSignals holds that a program with a parent-death signal is started by test/child, which knows when the kernel sends it.
func TestDeathSignals(t *testing.T) {
	const field, starter = "Pdeath" + "sig", `"` + module + `/test/child"`
	var holders int
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.Contains(path, "/test/child/") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), field) {
			return err
		}
		holders++
		if !strings.Contains(string(text), starter) {
			t.Errorf("%s sets %s: start the program with child.Start, or it ends with the thread that started it", path, field)
		}
		return nil
	})
	if err != nil || holders == 0 {
		t.Errorf("found %d files: %v", holders, err)
	}
}
