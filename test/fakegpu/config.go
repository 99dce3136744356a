package fakegpu

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bytes is an amount of memory; it prints as the library reads it.
type Bytes uint64

// What amounts are counted in.
const (
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// String is a whole number with its unit, "9216MiB".
func (b Bytes) String() string {
	if b%MiB == 0 {
		return fmt.Sprintf("%dMiB", uint64(b/MiB))
	}
	return fmt.Sprintf("%dB", uint64(b))
}

// Config is the input of a library. The zero value of a field is the library's default: one A100 with 80 GiB under
// driver 580.95.05, which never fails.
type Config struct {
	Node              string // words of other nodes are not seen
	Devices           int    // how many; 1. A negative number is none
	Name              string // "NVIDIA A100-SXM4-80GB"
	Driver            string // "580.95.05"
	CUDA              string // "13.0"
	ComputeCapability string // "8.0"
	ComputeMode       string // "default", "exclusive-process" or "prohibited"

	Fault               // of every device
	On    map[int]Fault // of one device, by its minor number; wins over Fault field by field
}

// Fault describes all devices or one: its size, and in which of the ways of drivers its readings are wrong.
type Fault struct {
	Memory Bytes    // 80 GiB
	Base   Bytes    // used with nobody there; 0
	Others Bytes    // held by tenants that the caller cannot see; 0
	MIG    []string // profiles of its instances, "1g.10gb"; none: MIG is off
	Closed bool     // with MIG on, the device itself reports nothing: the caller may not monitor it

	PIDs       string        // "own" namespace (default), "node" (every process of the node, by the node's numbers), or "+1000" (an offset)
	Figures    string        // "true" (default), "all-ones" or "zero"
	Duplicates bool          // each process is listed twice, each time with all it holds
	Listed     []Listed      // entries that belong to no process
	Hidden     []int         // PIDs that the lists leave out
	MPSClients string        // the lists that name an MPS client: "both" (default), "mps" or "compute"
	Linger     time.Duration // memory that a process held counts in the total so long after its end was first seen
	Stale      bool          // and its PID stays in the lists so long
	Limits     bool          // GetMemoryLimits and SetMemoryLimits answer: the driver charges cgroups
	Charged    Bytes         // its reported use; 0: the processes' sum
	// per-process utilisation: "off" (default), "own" PIDs, "node": as own and one PID of the node, "none": nothing runs, "trace": less than a
	// percent, or "unnamed": the device is busy, and nobody is named
	Usage       string
	Context     Bytes    // of a process, by libcuda; 64 MiB
	CUDALimit   Bytes    // libcuda's limit for its callers, the context with it; 0: the memory of the device
	CUDALimitOf string   // whose that is: "process" (default), "client", of an MPS daemon alone, or "pod", all of its processes
	CUDALeaks   []string // calls that the limit does not hold, as patterns: "cuMemAllocManaged"
	Xids        []int    // critical events, each delivered once to each event set

	Fail []Fail   // the first that fits a call decides
	Hang []string // calls that do not return while the config lists them; patterns as in Fail, and of CUDA those that take memory: "cuMemCreate"
	Slow []Slow
}

// Listed is an entry of a process list which no process stands behind.
type Listed struct {
	PID  int
	Held Bytes
}

// Fail makes calls fail. Call is an NVML function's name, or a pattern of it as
// in a shell: "nvmlDeviceGet*RunningProcesses*". Return is a code's name without
// NVML_ERROR_: "GPU_IS_LOST". Times is how often, in each process; 0 for always.
type Fail struct {
	Call   string
	Return string
	Times  int
}

// Slow makes calls take at least so long.
type Slow struct {
	Call string
	For  time.Duration
}

// String is the config as the library reads it, a line for each field that is set.
func (c Config) String() string {
	var w lines
	w.text("node", c.Node)
	if c.Devices < 0 {
		w.text("devices", "0")
	} else {
		w.number("devices", c.Devices)
	}
	w.text("name", c.Name)
	w.text("driver", c.Driver)
	w.text("cuda", c.CUDA)
	w.text("compute-capability", c.ComputeCapability)
	w.text("compute-mode", c.ComputeMode)
	c.Fault.print(&w)
	for _, device := range slices.Sorted(maps.Keys(c.On)) {
		w.scope = fmt.Sprintf("@%d", device)
		c.On[device].print(&w)
	}
	return w.String()
}

// WriteFile puts the config into a file at once: a library reads the old one or the
// new one, never a part. Containers must mount the folder, not the file: what is mounted
// as a file stays the old one.
func (c Config) WriteFile(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".config-")
	if err != nil {
		return fmt.Errorf("write the fake GPU's config: %w", err)
	}
	_, err = f.WriteString(c.String())
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write the fake GPU's config: %w", err)
	}
	return nil
}

func (f Fault) print(w *lines) {
	w.amount("memory", f.Memory)
	w.amount("base", f.Base)
	w.amount("others", f.Others)
	w.text("mig", strings.Join(f.MIG, ","))
	if f.Closed {
		w.text("monitor", "no")
	}
	w.text("pids", f.PIDs)
	w.text("figures", f.Figures)
	w.flag("duplicates", f.Duplicates)
	for _, l := range f.Listed {
		w.text("listed", fmt.Sprintf("%d:%s", l.PID, l.Held))
	}
	for _, pid := range f.Hidden {
		w.number("hidden", pid)
	}
	w.text("mps-clients", f.MPSClients)
	w.duration("linger", f.Linger)
	w.flag("stale", f.Stale)
	w.flag("limits", f.Limits)
	w.amount("charged", f.Charged)
	w.text("usage", f.Usage)
	w.amount("context", f.Context)
	w.amount("cuda-limit", f.CUDALimit)
	w.text("cuda-limit-of", f.CUDALimitOf)
	w.text("cuda-leaks", strings.Join(f.CUDALeaks, ","))
	for _, xid := range f.Xids {
		w.number("xid", xid)
	}
	for _, fail := range f.Fail {
		w.text("fail", strings.TrimSuffix(fmt.Sprintf("%s:%s:%d", fail.Call, fail.Return, fail.Times), ":0"))
	}
	for _, call := range f.Hang {
		w.text("hang", call)
	}
	for _, slow := range f.Slow {
		w.text("slow", fmt.Sprintf("%s:%dms", slow.Call, slow.For.Milliseconds()))
	}
}

// lines collects KEY=VALUE lines; a value that is zero is the default and left out.
type lines struct {
	strings.Builder
	scope string
}

func (w *lines) text(key, value string) {
	if value != "" {
		fmt.Fprintf(w, "%s%s=%s\n", key, w.scope, value)
	}
}

func (w *lines) number(key string, n int) {
	if n != 0 {
		w.text(key, fmt.Sprint(n))
	}
}

func (w *lines) amount(key string, b Bytes) {
	if b != 0 {
		w.text(key, b.String())
	}
}

func (w *lines) duration(key string, d time.Duration) {
	if d != 0 {
		w.text(key, fmt.Sprintf("%dms", d.Milliseconds()))
	}
}

func (w *lines) flag(key string, on bool) {
	if on {
		w.text(key, "yes")
	}
}
