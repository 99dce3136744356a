package fakegpu

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestTheLibraryHasEveryFunctionOfTheHeaderButThoseLeftOut(t *testing.T) {
	t.Parallel()
	nm, err := exec.LookPath("nm")
	if err != nil {
		t.Skip("no nm to list the library's functions with")
	}
	library, err := Build(t.TempDir(), "nvmlDeviceGetMigMode")
	if errors.Is(err, ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	listed, err := exec.Command(nm, "-D", "--defined-only", library).Output()
	if err != nil {
		t.Fatal(err)
	}
	text := string(listed)
	for _, name := range []string{"nvmlInit_v2", "nvmlErrorString", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlUnitGetCount", "nvmlEventSetWait_v2"} {
		if !strings.Contains(text, " "+name+"\n") {
			t.Errorf("%s is missing", name)
		}
	}
	if strings.Contains(text, " nvmlDeviceGetMigMode\n") || strings.Contains(text, "switches_read") {
		t.Error("a function is exported that must not be")
	}
	if n := strings.Count(text, " nvml"); n < 300 {
		t.Errorf("%d functions, want those of the whole header", n)
	}
}
