package gpu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

func TestReadErrors(t *testing.T) {
	starts := func(answer string) fakegpu.Config { return fakegpu.Config{Fault: failing(answer, "nvmlInit*")} }
	for name, tc := range map[string]struct {
		config        fakegpu.Config
		library, want string
	}{
		"no library":        {fakegpu.Config{}, "/nowhere/libnvidia-ml.so.1", "the container has no NVML"},
		"no driver":         {starts("DRIVER_NOT_LOADED"), "", "the node has no NVIDIA driver"},
		"a version skew":    {starts("LIB_RM_VERSION_MISMATCH"), "", "the driver was updated under the container"},
		"no device visible": {fakegpu.Config{Devices: -1}, "", "no device is visible to the guard"},
	} {
		t.Run(name, func(t *testing.T) {
			newNode(t, tc.config)
			if _, err := driver(t, Options{Library: tc.library}).Read(t.Context(), 0); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestReadAfterDriverInstall(t *testing.T) {
	n := newNode(t, fakegpu.Config{Fault: failing("DRIVER_NOT_LOADED", "nvmlInit*")})
	n.start("gpu0=100MiB")
	d := driver(t, Options{})
	if _, err := d.Read(t.Context(), 0); err == nil {
		t.Fatal("read without a driver")
	}
	n.configure(fakegpu.Config{})
	if got := n.short(readDevices(t, d, 0)); got != "0000 100/81920 a=100\n" {
		t.Errorf("got %q", got)
	}
}

func TestReadOldLibrary(t *testing.T) {
	n := newNode(t, fakegpu.Config{Fault: fakegpu.Fault{Usage: "own", Limits: true}})
	n.start("gpu0=100MiB/M+C")
	d := driver(t, Options{Library: libraries.old})
	if got := n.short(readDevices(t, d, 0)); got != "0000 100/81920 a=100\n" {
		t.Errorf("got %q", got)
	}
	if _, _, ok := d.Charge(t.Context(), d.devices[0].id, cgroup(t)); ok || d.Utilizations(t.Context()) != nil {
		t.Error("a function that the library lacks gave an answer")
	}
}

// A function that is called by a name which the library lacks ends the process.
func TestReadLibraryWithOtherVersions(t *testing.T) {
	n := newNode(t, fakegpu.Config{})
	n.start("gpu0=100MiB")
	if got := n.short(readDevices(t, driver(t, Options{Library: libraries.other}), 0)); got != "0000 0/0 a=100\n" {
		t.Errorf("got %q", got)
	}
}

func TestReadHangs(t *testing.T) {
	n := newNode(t, fakegpu.Config{Fault: fakegpu.Fault{Hang: []string{lists}}})
	n.start("gpu0=100MiB")
	d := driver(t, Options{Limit: 300 * time.Millisecond})
	for range 3 {
		began := time.Now()
		if _, err := d.Read(t.Context(), 0); !errors.Is(err, ErrHung) {
			t.Errorf("got %v, want ErrHung", err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("gave up after %s", took)
		}
	}
	if n := len(d.slot(0).busy); n != 1 {
		t.Errorf("%d calls hang, want the first alone", n)
	}
	n.configure(fakegpu.Config{})
	deadline := time.Now().Add(30 * time.Second)
	for {
		if devices, err := d.Read(t.Context(), 0); err == nil {
			if got := n.short(devices); got != "0000 100/81920 a=100\n" {
				t.Errorf("got %q", got)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("never read again")
		}
	}
}

// TestReadOneDeviceHangs: one device that hangs, or is slow, costs the others one wait.
func TestReadOneDeviceHangs(t *testing.T) {
	const limit = 500 * time.Millisecond
	for name, fault := range map[string]fakegpu.Fault{
		"a list that hangs":      {Hang: []string{lists}},
		"a total that hangs":     {Hang: []string{total}},
		"a total that is slow":   {Slow: []fakegpu.Slow{{Call: total, For: 2 * limit / 3}}}, // a list comes with two
		"use that hangs as well": {Hang: []string{lists, "nvmlDeviceGetProcessUtilization*"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, fakegpu.Config{Devices: 3})
			n.start("gpu0=100MiB", "gpu1=100MiB")
			d := driver(t, Options{Limit: limit})
			readDevices(t, d, 0)
			n.configure(fakegpu.Config{Devices: 3, On: map[int]fakegpu.Fault{1: fault}})
			readDevices(t, d, 0)
			var took time.Duration
			for range 10 {
				asked := time.Now()
				read := readDevices(t, d, 0)
				d.Activities(t.Context())
				took += time.Since(asked)
				if got := read[1].Fault; !strings.Contains(got, ErrHung.Error()) {
					t.Errorf("device 1: %q", got)
				}
				if read[0].Fault != "" || read[2].Fault != "" || read[0].Listed.Before(asked) || read[2].Listed.Before(asked) {
					t.Errorf("the others: %+v %+v", read[0], read[2])
				}
			}
			if took > 8*limit { // ten waits would take ten
				t.Errorf("ten more readings took %s", took)
			}
			n.configure(fakegpu.Config{Devices: 3})
			for deadline := time.Now().Add(time.Minute); ; {
				asked := time.Now()
				switch read := readDevices(t, d, time.Hour)[1]; {
				case read.Fault == "" && read.Listed.Before(asked):
					t.Error("a list from before the reading")
				case read.Fault != "" && time.Now().Before(deadline):
					continue
				case read.Fault != "":
					t.Errorf("never read again: %s", read.Fault)
				}
				return
			}
		})
	}
}

func TestReadDeviceHangsFromTheStart(t *testing.T) {
	hangs := fakegpu.Config{Devices: 2, On: map[int]fakegpu.Fault{0: {Hang: []string{"nvmlDeviceGetUUID*"}}}}
	n := newNode(t, hangs)
	n.start("gpu1=100MiB")
	d := driver(t, Options{Limit: 300 * time.Millisecond})
	for range 3 {
		d.foundAt = time.Time{}
		if read := readDevices(t, d, 0); !strings.Contains(read[0].Fault, ErrHung.Error()) || n.short(read[1:]) != "0001 100/81920 a=100\n" {
			t.Errorf("got %s", n.short(read))
		}
	}
}

func TestFacts(t *testing.T) {
	n := newNode(t, fakegpu.Config{Name: "Fake", ComputeMode: "exclusive-process", Fault: fakegpu.Fault{Memory: 40 * fakegpu.GiB}})
	got, err := driver(t, Options{}).Facts(t.Context())
	want := Facts{Driver: "580.95.05", Devices: []Device{{"GPU-00000000-0000-4000-8000-000000000000", "Fake", 40960 << 20, false, true}}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n.configure(fakegpu.Config{Fault: fakegpu.Fault{Hang: []string{lists, total}}})
	if _, err := driver(t, Options{}).Facts(ctx); err == nil {
		t.Error("a cancelled read gave facts")
	}
}

// cgroup is a folder as the kernel's, of a cgroup without processes.
func cgroup(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCharge(t *testing.T) {
	n := newNode(t, fakegpu.Config{Fault: fakegpu.Fault{Limits: true, Charged: 77 * fakegpu.MiB}})
	d := driver(t, Options{})
	id := readDevices(t, d, 0)[0].ID
	if used, _, ok := d.Charge(t.Context(), id, cgroup(t)); !ok || used != 77<<20 {
		t.Errorf("got %d, %v", used, ok)
	}
	if _, _, ok := d.Charge(t.Context(), id, "/nowhere"); ok {
		t.Error("a cgroup that cannot be opened was charged")
	}
	n.configure(fakegpu.Config{})
	if _, _, ok := d.Charge(t.Context(), id, cgroup(t)); ok {
		t.Error("a driver without the figure gave one")
	}
}

func TestUtilizations(t *testing.T) {
	unlisted := fakegpu.Fault{Usage: "node"} // the driver samples a PID besides that it does not list
	n := newNode(t, fakegpu.Config{Fault: unlisted})
	pid := n.start("gpu0=100MiB").Process.Pid
	d := driver(t, Options{})
	readDevices(t, d, 0)
	got := d.Utilizations(t.Context())
	if want := []guard.Utilization{{Device: "GPU-00000000-0000-4000-8000-000000000000", PID: pid, Percent: 40}}; !cmp.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	n.configure(fakegpu.Config{Driver: "565.57.01", Fault: unlisted})
	old := driver(t, Options{})
	readDevices(t, old, 0)
	if got := old.Utilizations(t.Context()); got != nil {
		t.Errorf("a driver that gives the node's PIDs: %+v", got)
	}
}

func TestActivities(t *testing.T) {
	n := newNode(t, fakegpu.Config{Fault: fakegpu.Fault{Usage: "own"}})
	pid := n.start("gpu0=100MiB").Process.Pid
	d := driver(t, Options{})
	readDevices(t, d, 0)
	const id = "GPU-00000000-0000-4000-8000-000000000000"
	ran := []guard.Utilization{{Device: id, PID: pid, Percent: 40}}
	for _, tc := range []struct {
		usage string
		want  []guard.Activity
	}{
		{"own",
			[]guard.Activity{{Device: id, Complete: true, Ran: map[int]bool{pid: true}, Utilizations: ran, Sampled: map[int]bool{pid: true}}}},
		// a process that is not listed
		{"node", []guard.Activity{{Device: id, Ran: map[int]bool{pid: true, 645400: true},
			Utilizations: ran, Sampled: map[int]bool{pid: true, 645400: true}}}},
		// of less than a percent
		{"trace", []guard.Activity{{Device: id, Complete: true, Utilizations: []guard.Utilization{{Device: id, PID: pid}},
			Sampled: map[int]bool{pid: true}}}},
		{"none", []guard.Activity{{Device: id, Complete: true}}},
		{"unnamed", nil}, // a driver that does not attribute use
		{"off", nil},
	} {
		n.configure(fakegpu.Config{Fault: fakegpu.Fault{Usage: tc.usage}})
		if diff := cmp.Diff(tc.want, d.Activities(t.Context()), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("usage %s (-want +got)\n%s", tc.usage, diff)
		}
	}
}

// A driver asked for what came after a time in the future reports nothing.
func TestActivitiesAfterTheClockWasSetBack(t *testing.T) {
	n := newNode(t, fakegpu.Config{Fault: fakegpu.Fault{Usage: "own"}})
	pid := n.start("gpu0=100MiB").Process.Pid
	d := driver(t, Options{})
	readDevices(t, d, 0)
	d.devices[0].seen = uint64(time.Now().Add(2 * time.Hour).UnixMicro())
	if got := d.Activities(t.Context()); got != nil {
		t.Errorf("what ran since the clock was set back is unknown, and it reports %+v", got)
	}
	if got := d.Activities(t.Context()); len(got) != 1 || !got[0].Ran[pid] {
		t.Errorf("after that it reports %+v", got)
	}
}

func TestOlder(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"535.104.12", FirstInPod, true}, {"560.35.03", FirstInPod, true}, {"565.57.01", FirstInPod, false},
		{"565.57", FirstInPod, true}, {"570.1", FirstInPod, false}, {"1000.1", FirstInPod, false},
		{"", FirstInPod, true}, {"new", FirstInPod, true},
	} {
		if got := Older(tc.a, tc.b); got != tc.want {
			t.Errorf("Older(%q, %q) = %v", tc.a, tc.b, got)
		}
	}
}
