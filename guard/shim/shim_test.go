package shim

import (
	"cmp"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPythons runs testdata/test_shim.py for each interpreter of this machine. One that has PyTorch is tried with it; for the
// others there is a stand-in of torch.cuda.
func TestPythons(t *testing.T) {
	active, old := pythons()
	if len(active) == 0 {
		t.Skip("starts Python: there is no python3 in PATH; PYTHONS=/one/bin/python:/another names others")
	}
	for _, python := range active {
		t.Run(python, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), active[0], filepath.Join("testdata", "test_shim.py"))
			cmd.Env = append(os.Environ(), "PYTHONS="+python, "OLD_PYTHONS="+strings.Join(old, ":"),
				"PYTHONDONTWRITEBYTECODE=1", "TMPDIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Error(err)
			}
		})
	}
	if len(old) == 0 {
		t.Log("no Python before 3.6 is here: that it can read the file was not tried")
	}
}

// pythons are the interpreters that PYTHONS names, else those in PATH and of pyenv: a program for each version, the newest
// first. Those before 3.6 are old: the file does nothing there.
func pythons() (active, old []string) {
	names := strings.Split(os.Getenv("PYTHONS"), ":")
	if names[0] == "" {
		names, _ = filepath.Glob(filepath.Join(cmp.Or(os.Getenv("PYENV_ROOT"), filepath.Join(os.Getenv("HOME"), ".pyenv")),
			"versions", "*", "bin", "python"))
		names = append([]string{"python3", "python2"}, names...)
	}
	found := map[int]string{} // by 100 times the major version, and the minor one
	for _, name := range names {
		out, _ := exec.Command(name, "-c", "import sys; print(sys.version_info[0] * 100 + sys.version_info[1])").Output()
		if version, err := strconv.Atoi(strings.TrimSpace(string(out))); err == nil && found[version] == "" {
			found[version] = name
		}
	}
	for _, version := range slices.Backward(slices.Sorted(maps.Keys(found))) {
		if version < 306 {
			old = append(old, found[version])
		} else {
			active = append(active, found[version])
		}
	}
	return active, old
}

func TestWrite(t *testing.T) {
	t.Parallel()
	t.Run("into a folder that takes nothing", func(t *testing.T) {
		t.Parallel()
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := Write("/nowhere", program); err == nil || !strings.Contains(err.Error(), "write shim: ") {
			t.Errorf("got %v", err)
		}
	})
}
