package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// libraries are built once for all tests: the fake NVML, and one of an older
// driver that lacks what came later.
var libraries struct{ whole, old string }

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "gpu")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		old := filepath.Join(dir, "old")
		if err := os.Mkdir(old, 0o755); err != nil {
			panic(err)
		}
		libraries.whole, err = fakegpu.Build(dir)
		if err == nil {
			libraries.old, err = fakegpu.Build(old, "nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses",
				"nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMemoryLimits_v1", "nvmlDeviceGetMigMode", "nvmlDeviceGetProcessUtilization")
		}
		if errors.Is(err, fakegpu.ErrNoCompiler) {
			fmt.Println("SKIP: guard/gpu:", err)
			return 0
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		return m.Run()
	}())
}

// fake sets the switches and returns the file to change them in.
func fake(t *testing.T, switches string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "switches")
	turn(t, file, switches)
	t.Setenv("GPUSLICE_FAKE_GPU", file)
	return file
}

func turn(t *testing.T, file, switches string) {
	t.Helper()
	// Renamed into place: the library reads the file at any moment.
	if err := os.WriteFile(file+".new", []byte(strings.ReplaceAll(switches, "; ", "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

func driver(t *testing.T, o Options) *Driver {
	t.Helper()
	if o.Library == "" {
		o.Library = libraries.whole
	}
	return New(o)
}

func look(t *testing.T, d *Driver, maxAge time.Duration) []guard.Device {
	t.Helper()
	devices, err := d.Read(t.Context(), maxAge)
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

// short describes devices as "UUID-tail used/total: pid=MiB".
func short(devices []guard.Device) string {
	var text strings.Builder
	for _, d := range devices {
		fmt.Fprintf(&text, "%s %d/%d", d.ID[len(d.ID)-4:], d.UsedBytes>>20, d.TotalBytes>>20)
		if d.Fault != "" {
			fmt.Fprintf(&text, " fault %s", d.Fault)
		}
		for _, p := range d.Processes {
			fmt.Fprintf(&text, " %d=", p.PID)
			if p.Known {
				fmt.Fprintf(&text, "%d", p.UsedBytes>>20)
			}
			if p.MPS {
				text.WriteString("mps")
			}
		}
		text.WriteString("\n")
	}
	return text.String()
}

func TestWhatADriverSaysIsReadForWhatItIsWorth(t *testing.T) {
	const two = "proc 0 70 5000; proc 0 71 300"
	for name, tc := range map[string]struct{ switches, want string }{
		"compute processes":                            {two, "0000 5300/81920 70=5000 71=300\n"},
		"duplicates count once, with the largest":      {two + "; duplicates 1; graphics 1", "0000 5300/81920 70=5000 71=300\n"},
		"all ones is no figure":                        {two + "; all_ones 1", "0000 5300/81920 70= 71=\n"},
		"zero is no figure":                            {two + "; zero 1", "0000 5300/81920 70= 71=\n"},
		"more than the device has is no figure":        {"proc 0 70 90000", "0000 81920/81920 70=\n"},
		"MPS clients in both lists":                    {two + "; mps 1", "0000 5300/81920 70=5000mps 71=300mps\n"},
		"MPS clients in the MPS list alone":            {two + "; mps 2", "0000 5300/81920 70=5000mps 71=300mps\n"},
		"exclusive compute mode means MPS":             {two + "; compute_mode 3", "0000 5300/81920 70=5000mps 71=300mps\n"},
		"a list that grows while it is read":           {two + "; short_lists 3", "0000 5300/81920 70=5000 71=300\n"},
		"lists not supported":                          {two + "; list 3", "0000 5300/81920 fault list the processes of GPU-00000000-0000-4000-8000-000000000000: Not Supported: this device does not say\n"},
		"no permission":                                {two + "; list 4", "0000 5300/81920 fault list the processes of GPU-00000000-0000-4000-8000-000000000000: Insufficient Permissions: the container may not ask this device\n"},
		"a transient failure":                          {two + "; list 999", "0000 5300/81920 fault list the processes of GPU-00000000-0000-4000-8000-000000000000: Unknown Error\n"},
		"a lost device":                                {two + "; lost 15", "0000 0/0 fault read the memory of GPU-00000000-0000-4000-8000-000000000000: GPU is lost: the device has fallen off the bus; the device plugin deals with it\n"},
		"a total that is not supported, lists that do": {two + "; memory 3", "0000 0/0 70=5000 71=300\n"},
		"a driver that gives the node's PIDs":          {two + "; driver 535.104.12", "0000 5300/81920 fault driver 535.104.12 does not tell a pod what its processes hold; 565.57.01 and newer do\n"},
		"a driver that gives no memory":                {two + "; driver 560.35.03", "0000 5300/81920 fault driver 560.35.03 does not tell a pod what its processes hold; 565.57.01 and newer do\n"},
		"two devices":                                  {"devices 2; " + two + "; proc 1 72 10", "0000 5300/81920 70=5000 71=300\n0001 10/81920 72=10\n"},
		"MIG instances in place of their device":       {"mig 2; mem_mib 40960", "0000 0/9728\n0001 0/9728\n"},
	} {
		t.Run(name, func(t *testing.T) {
			fake(t, tc.switches)
			if diff := cmp.Diff(tc.want, short(look(t, driver(t, Options{}), 0))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestADriverThatCannotWorkHereSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		switches, library, want string
	}{
		"no library":        {"", "/nowhere/libnvidia-ml.so.1", "the container has no NVML"},
		"no driver":         {"init 9", "", "the node has no NVIDIA driver"},
		"a version skew":    {"init 18", "", "the driver was updated under the container"},
		"no device visible": {"devices 0", "", "no device is visible to the guard"},
	} {
		t.Run(name, func(t *testing.T) {
			fake(t, tc.switches)
			if _, err := driver(t, Options{Library: tc.library}).Read(t.Context(), 0); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestADriverThatComesLaterIsFound(t *testing.T) {
	file := fake(t, "init 9")
	d := driver(t, Options{})
	if _, err := d.Read(t.Context(), 0); err == nil {
		t.Fatal("read without a driver")
	}
	turn(t, file, "proc 0 70 100")
	if got := short(look(t, d, 0)); got != "0000 100/81920 70=100\n" {
		t.Errorf("got %q", got)
	}
}

func TestMissingFunctionsAreNotCalled(t *testing.T) {
	fake(t, "proc 0 70 100; mps 1; utilization 1; charges 1")
	d := driver(t, Options{Library: libraries.old})
	if got := short(look(t, d, 0)); got != "0000 100/81920 70=100\n" {
		t.Errorf("got %q", got)
	}
	if _, _, ok := d.Charge(t.Context(), d.devices[0].id, "/"); ok || d.Utilizations(t.Context()) != nil {
		t.Error("a function that the library lacks gave an answer")
	}
}

func TestACallThatHangsIsGivenUpAndTakenUpAgain(t *testing.T) {
	file := fake(t, "hang 1; proc 0 70 100")
	d := driver(t, Options{Limit: 100 * time.Millisecond})
	for range 3 {
		began := time.Now()
		if _, err := d.Read(t.Context(), 0); !errors.Is(err, ErrHung) {
			t.Errorf("got %v, want ErrHung", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("gave up after %s", took)
		}
	}
	if n := len(d.dog.busy); n != 1 {
		t.Errorf("%d calls hang, want the first alone", n)
	}
	turn(t, file, "proc 0 70 100")
	deadline := time.Now().Add(10 * time.Second)
	for {
		if devices, err := d.Read(t.Context(), 0); err == nil {
			if got := short(devices); got != "0000 100/81920 70=100\n" {
				t.Errorf("got %q", got)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("never read again")
		}
	}
}

func TestTheListIsReadWhenTheTotalMoves(t *testing.T) {
	file := fake(t, "proc 0 70 100")
	d := driver(t, Options{})
	first := look(t, d, time.Hour)[0].Listed
	if again := look(t, d, time.Hour)[0].Listed; !again.Equal(first) {
		t.Error("listed again though nothing moved")
	}
	turn(t, file, "proc 0 70 104")
	if again := look(t, d, time.Hour)[0].Listed; !again.Equal(first) {
		t.Error("listed again for less than a context")
	}
	turn(t, file, "proc 0 70 120")
	second := look(t, d, time.Hour)
	if !second[0].Listed.After(first) || second[0].Processes[0].UsedBytes != 120<<20 {
		t.Errorf("not listed again when the total moved: %s", short(second))
	}
	if third := look(t, d, 0)[0].Listed; !third.After(second[0].Listed) {
		t.Error("a look that asks for a new list got an old one")
	}
}

func TestALostDeviceDoesNotBlindTheOther(t *testing.T) {
	file := fake(t, "devices 2; proc 1 72 10")
	d := driver(t, Options{})
	look(t, d, 0)
	turn(t, file, "devices 2; proc 1 72 10; lost 15")
	if got := look(t, d, 0); len(got) != 2 || got[0].Fault == "" {
		t.Fatalf("got %s", short(got))
	}
	turn(t, file, "devices 2; proc 1 72 10")
	if got := short(look(t, d, 0)); got != "0000 0/81920\n0001 10/81920 72=10\n" {
		t.Errorf("after it came back: %s", got)
	}
}

func TestTheDriversOwnChargeIsReadWhereItKeepsOne(t *testing.T) {
	file := fake(t, "charges 1; charge_mib 77; proc 0 70 100")
	d := driver(t, Options{})
	id := look(t, d, 0)[0].ID
	if used, _, ok := d.Charge(t.Context(), id, t.TempDir()); !ok || used != 77<<20 {
		t.Errorf("got %d, %v", used, ok)
	}
	if _, _, ok := d.Charge(t.Context(), id, "/nowhere"); ok {
		t.Error("a cgroup that cannot be opened was charged")
	}
	turn(t, file, "proc 0 70 100")
	if _, _, ok := d.Charge(t.Context(), id, t.TempDir()); ok {
		t.Error("a driver without the figure gave one")
	}
}

func TestUtilisationNamesListedProcessesAlone(t *testing.T) {
	fake(t, "utilization 2; proc 0 70 100")
	d := driver(t, Options{})
	look(t, d, 0)
	got := d.Utilizations(t.Context())
	if want := []Utilization{{"GPU-00000000-0000-4000-8000-000000000000", 70, 40}}; !cmp.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	fake(t, "utilization 2; proc 0 70 100; driver 565.57.01")
	old := driver(t, Options{})
	look(t, old, 0)
	if got := old.Utilizations(t.Context()); got != nil {
		t.Errorf("a driver that gives the node's PIDs: %+v", got)
	}
}

func TestRealProcessesAreListedByWhatTheirNameSays(t *testing.T) {
	fake(t, "")
	cmd := exec.Command("/bin/sleep", "60")
	cmd.Args[0] = "gpu:0:512M"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := driver(t, Options{})
	want := fmt.Sprintf(" %d=512", cmd.Process.Pid)
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(short(look(t, d, 0)), want) {
		if time.Now().After(deadline) {
			t.Fatalf("%d is not listed: %s", cmd.Process.Pid, short(look(t, d, 0)))
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if got := short(look(t, d, 0)); strings.Contains(got, want) {
		t.Errorf("still listed after its exit: %s", got)
	}
}

func TestFactsNameDriverAndDevices(t *testing.T) {
	fake(t, "mem_mib 40960; name Fake; compute_mode 3")
	got, err := driver(t, Options{}).Facts(t.Context())
	want := Facts{Driver: "580.95.05", Devices: []Device{{"GPU-00000000-0000-4000-8000-000000000000", "Fake", 40960 << 20, false, true}}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fake(t, "hang 2")
	if _, err := driver(t, Options{}).Facts(ctx); err == nil {
		t.Error("a cancelled read gave facts")
	}
}

func TestOlderComparesDriversByNumber(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"535.104.12", FirstInPod, true}, {"560.35.03", FirstInPod, true}, {"565.57.01", FirstInPod, false},
		{"565.57", FirstInPod, true}, {"570.1", FirstInPod, false}, {"1000.1", FirstInPod, false}, {"", FirstInPod, true}, {"new", FirstInPod, true},
	} {
		if got := Older(tc.a, tc.b); got != tc.want {
			t.Errorf("Older(%q, %q) = %v", tc.a, tc.b, got)
		}
	}
}
