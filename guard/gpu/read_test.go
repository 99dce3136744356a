package gpu

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// Calls that tests make fail.
const (
	lists = "nvmlDeviceGet*RunningProcesses*"
	total = "nvmlDeviceGetMemoryInfo*"
)

// failing is a device on which calls answer so.
func failing(answer string, calls ...string) fakegpu.Fault {
	var f fakegpu.Fault
	for _, call := range calls {
		f.Fail = append(f.Fail, fakegpu.Fail{Call: call, Return: answer})
	}
	return f
}

func TestRead(t *testing.T) {
	two, clients := []string{"gpu0=5000MiB", "gpu0=300MiB"}, []string{"gpu0=5000MiB/M+C", "gpu0=300MiB/M+C"}
	faulty := func(f fakegpu.Fault) fakegpu.Config { return fakegpu.Config{Fault: f} }
	const noList = "0000 5300/81920 fault list the processes of GPU-00000000-0000-4000-8000-000000000000: "
	for name, tc := range map[string]struct {
		words  []string
		config fakegpu.Config
		want   string
	}{
		"compute processes": {two, fakegpu.Config{}, "0000 5300/81920 a=5000 b=300\n"},
		"graphics processes": {[]string{"gpu0=5000MiB", "gpu0=300MiB/G"},
			fakegpu.Config{}, "0000 5300/81920 a=5000 b=300\n"},
		"duplicates count once, with all they hold": {two, faulty(fakegpu.Fault{Duplicates: true}), "0000 5300/81920 a=5000 b=300\n"},
		"all ones is no figure":                     {two, faulty(fakegpu.Fault{Figures: "all-ones"}), "0000 5300/81920 a= b=\n"},
		"zero is no figure":                         {two, faulty(fakegpu.Fault{Figures: "zero"}), "0000 5300/81920 a= b=\n"},
		"more than the device has is no figure":     {[]string{"gpu0=90000MiB"}, fakegpu.Config{}, "0000 81920/81920 a=\n"},
		"MPS clients in both lists":                 {clients, fakegpu.Config{}, "0000 5300/81920 a=5000mps b=300mps\n"},
		"MPS clients in the MPS list alone":         {clients, faulty(fakegpu.Fault{MPSClients: "mps"}), "0000 5300/81920 a=5000mps b=300mps\n"},
		"exclusive compute mode means MPS": {two, fakegpu.Config{ComputeMode: "exclusive-process"},
			"0000 5300/81920 a=5000mps b=300mps\n"},
		"a list that grows while it is read": {two,
			faulty(fakegpu.Fault{Fail: []fakegpu.Fail{{Call: lists, Return: "INSUFFICIENT_SIZE", Times: 3}}}),
			"0000 5300/81920 a=5000 b=300\n"},
		"lists not supported": {two, faulty(failing("NOT_SUPPORTED", lists)), noList + "Not Supported: this device does not report it\n"},
		"no permission": {two, faulty(failing("NO_PERMISSION", lists)),
			noList + "Insufficient Permissions: the container may not read this device\n"},
		"a transient failure": {two, faulty(failing("UNKNOWN", lists)), noList + "Unknown Error\n"},
		"a lost device": {two, faulty(failing("GPU_IS_LOST", total, lists)),
			"0000 0/0 fault read the memory of GPU-00000000-0000-4000-8000-000000000000: GPU is lost: the device has fallen off the bus; the device plugin deals with it\n"},
		"a total that is not supported, lists that do": {two, faulty(failing("NOT_SUPPORTED", total)), "0000 0/0 a=5000 b=300\n"},
		"a driver that gives the node's PIDs": {two, fakegpu.Config{Driver: "535.104.12"},
			"0000 5300/81920 fault driver 535.104.12 does not report to a pod what its processes use; 565.57.01 and newer do\n"},
		"a driver that gives no memory": {two, fakegpu.Config{Driver: "560.35.03"},
			"0000 5300/81920 fault driver 560.35.03 does not report to a pod what its processes use; 565.57.01 and newer do\n"},
		"two devices": {append(two, "gpu1=10MiB"), fakegpu.Config{Devices: 2}, "0000 5300/81920 a=5000 b=300\n0001 10/81920 c=10\n"},
		"MIG instances in place of their device, which is shut": {[]string{"gpu0.1=2GiB"},
			faulty(fakegpu.Fault{Memory: 40 * fakegpu.GiB, MIG: []string{"1g.10gb", "1g.10gb"}, Closed: true}),
			"0000 0/9728\n0001 2048/9728 a=2048\n"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, tc.config)
			for _, word := range tc.words {
				n.start(word)
			}
			if diff := cmp.Diff(tc.want, n.short(readDevices(t, driver(t, Options{}), 0))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadMergesLists(t *testing.T) {
	n := newNode(t, fakegpu.Config{})
	n.start("gpu0=5000MiB", "gpu0=300MiB/G")
	n.start("gpu0=64MiB", "gpu0=700MiB/G")
	if diff := cmp.Diff("0000 6064/81920 a=5000 b=700\n", n.short(readDevices(t, driver(t, Options{}), 0))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// listed is a node of two devices, where an entry of no real process holds so much on the second.
func listed(mib fakegpu.Bytes) fakegpu.Config {
	held := mib * fakegpu.MiB
	return fakegpu.Config{Devices: 2, On: map[int]fakegpu.Fault{1: {Others: held, Listed: []fakegpu.Listed{{PID: 70, Held: held}}}}}
}

func TestReadListsWhenTheTotalMoves(t *testing.T) {
	n := newNode(t, listed(100))
	d := driver(t, Options{})
	first := readDevices(t, d, time.Hour)[1].Listed
	if again := readDevices(t, d, time.Hour)[1].Listed; !again.Equal(first) {
		t.Error("listed again though nothing moved")
	}
	n.configure(listed(104))
	if again := readDevices(t, d, time.Hour)[1].Listed; !again.Equal(first) {
		t.Error("listed again for less than a context")
	}
	n.configure(listed(120))
	second := readDevices(t, d, time.Hour)
	if !second[1].Listed.After(first) || second[1].Processes[0].UsedBytes != 120<<20 {
		t.Errorf("not listed again when the total moved: %s", n.short(second))
	}
	if third := readDevices(t, d, 0)[1].Listed; !third.After(second[1].Listed) {
		t.Error("a read that asks for a new list got an old one")
	}
}

func TestReadLostDevice(t *testing.T) {
	good, lost := listed(10), listed(10)
	lost.On[0] = failing("GPU_IS_LOST", "*")
	n := newNode(t, good)
	d := driver(t, Options{})
	readDevices(t, d, 0)
	n.configure(lost)
	want := "0000 0/0 fault read the memory of GPU-00000000-0000-4000-8000-000000000000: GPU is lost: the device has fallen off the bus; the device plugin deals with it\n" +
		"0001 10/81920 70=10\n"
	for range 2 { // the second time the devices are opened again
		if diff := cmp.Diff(want, n.short(readDevices(t, d, 0))); diff != "" {
			t.Errorf("while it is lost, -want +got:\n%s", diff)
		}
	}
	n.configure(good)
	if diff := cmp.Diff("0000 0/81920\n0001 10/81920 70=10\n", n.short(readDevices(t, d, 0))); diff != "" {
		t.Errorf("after it came back, -want +got:\n%s", diff)
	}
}

func TestReadDeviceLostFromTheStart(t *testing.T) {
	lost := listed(10)
	lost.On[0] = failing("GPU_IS_LOST", "*")
	n := newNode(t, lost)
	d := driver(t, Options{})
	if diff := cmp.Diff("0001 10/81920 70=10\n", n.short(readDevices(t, d, 0)[1:])); diff != "" {
		t.Errorf("the good one, -want +got:\n%s", diff)
	}
	if got := readDevices(t, d, 0)[0]; got.ID != "device 0" || !strings.Contains(got.Fault, "GPU is lost") {
		t.Errorf("the lost one: %+v", got)
	}
	n.configure(listed(10))
	d.foundAt = time.Time{}
	if diff := cmp.Diff("0000 0/81920\n0001 10/81920 70=10\n", n.short(readDevices(t, d, 0))); diff != "" {
		t.Errorf("after it came back, -want +got:\n%s", diff)
	}
}

func TestReadAfterDriverUpdate(t *testing.T) {
	n := newNode(t, fakegpu.Config{})
	d := driver(t, Options{})
	if readDevices(t, d, 0); d.Ended() != nil {
		t.Error("updated before it was")
	}
	n.configure(fakegpu.Config{Fault: failing("LIB_RM_VERSION_MISMATCH", "*")})
	if readDevices(t, d, 0); !errors.Is(d.Ended(), ErrUpdated) {
		t.Error("not updated")
	}
}

// TestReadAfterDevicesWereCutOff: systemctl daemon-reload can take the devices from a running container (NVIDIA/nvidia-docker 1730).
func TestReadAfterDevicesWereCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		read bool // before that
		cut  fakegpu.Config
	}{
		"later":        {true, fakegpu.Config{Devices: 2, Fault: failing("UNKNOWN", "*")}},
		"at the start": {false, fakegpu.Config{Fault: failing("UNKNOWN", "nvmlInit*")}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, fakegpu.Config{Devices: 2})
			d := driver(t, Options{})
			if c.read {
				readDevices(t, d, 0)
			}
			n.configure(c.cut)
			_, _ = d.Read(t.Context(), 0)
			if err := d.Ended(); err != nil {
				t.Errorf("at once: %v", err)
			}
			if d.patient = 0; !errors.Is(d.Ended(), ErrCutOff) {
				t.Errorf("after some time: %v", d.Ended())
			}
			n.configure(fakegpu.Config{Devices: 2})
			if readDevices(t, d, 0); d.Ended() != nil {
				t.Errorf("after it came back: %v", d.Ended())
			}
		})
	}
	t.Run("one of two", func(t *testing.T) {
		newNode(t, fakegpu.Config{Devices: 2, On: map[int]fakegpu.Fault{1: failing("UNKNOWN", "nvmlDeviceGetMemoryInfo*")}})
		d := driver(t, Options{})
		d.patient = 0
		if readDevices(t, d, 0); d.Ended() != nil {
			t.Error(d.Ended())
		}
	})
}

// TestReadInstanceThatDoesNotOpen: go-nvml issue 60.
func TestReadInstanceThatDoesNotOpen(t *testing.T) {
	for _, answer := range []string{"GPU_IS_LOST", "UNKNOWN", "NO_PERMISSION"} {
		t.Run(answer, func(t *testing.T) {
			c := fakegpu.Config{Devices: 2, Fault: fakegpu.Fault{Memory: 40 * fakegpu.GiB}}
			mig := fakegpu.Fault{Memory: 40 * fakegpu.GiB, MIG: []string{"1g.10gb", "1g.10gb"}}
			bad := mig
			bad.Fail = []fakegpu.Fail{{Call: "nvmlDeviceGetMigDeviceHandleByIndex", Return: answer}}
			c.On = map[int]fakegpu.Fault{1: bad}
			n := newNode(t, c)
			d := driver(t, Options{})
			devices := readDevices(t, d, 0)
			if len(devices) < 2 || devices[0].Fault != "" || devices[1].ID != "instance 0 of device 1" ||
				!strings.Contains(devices[1].Fault, "open instance 0 of device 1: ") {
				t.Errorf("%s", n.short(devices))
			}
			c.On = map[int]fakegpu.Fault{1: mig}
			n.configure(c)
			d.foundAt = time.Time{}
			if devices = readDevices(t, d, 0); len(devices) != 3 ||
				slices.ContainsFunc(devices, func(d guard.Device) bool { return d.Fault != "" }) {
				t.Errorf("after it came back: %s", n.short(devices))
			}
		})
	}
}

func TestReadAfterExit(t *testing.T) {
	n := newNode(t, fakegpu.Config{})
	d := driver(t, Options{})
	cmd := n.start("gpu0=512MiB")
	if got := n.short(readDevices(t, d, 0)); got != "0000 512/81920 a=512\n" {
		t.Errorf("before its exit: %s", got)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if got := n.short(readDevices(t, d, 0)); got != "0000 0/81920\n" {
		t.Errorf("after its exit: %s", got)
	}
}
