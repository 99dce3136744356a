package gpu

import (
	"context"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Options are how devices are read.
type Options struct {
	// Library is the file to load; empty: libnvidia-ml.so.1 of the container.
	Library string
	// Limit bounds one read of all devices; 0: 1.5 s.
	Limit time.Duration
	// NodePIDs: the guard shares the node's PID namespace, so that drivers older
	// than FirstInPod serve.
	NodePIDs bool
	// MPS: the pod was given to an MPS daemon, so that each of its processes may
	// be a client.
	MPS bool
}

// Driver reads devices. It implements guard.Reader and is safe for concurrent
// use. Use New.
type Driver struct {
	options  Options
	watchdog *watchdog
	library  nvml.Interface

	// What follows belongs to the call that the watchdog lets in.
	opened  bool
	version string
	has     map[string]bool
	devices []*device
	stale   bool // the handles are to be opened again
}

// device is one device or MIG instance, and what was last listed on it.
type device struct {
	handle    nvml.Device
	id, name  string
	instance  bool
	exclusive bool // compute mode: only an MPS server may hold a context
	last      list
	seen      uint64 // time stamp of the newest utilization sample
}

// New returns a driver that loads NVML with its first read, and tries again with
// each read until that succeeds.
func New(o Options) *Driver {
	if o.Limit == 0 {
		o.Limit = 1500 * time.Millisecond
	}
	var options []nvml.LibraryOption
	if o.Library != "" {
		options = append(options, nvml.WithLibraryPath(o.Library))
	}
	return &Driver{options: o, watchdog: newWatchdog(o.Limit), library: nvml.New(options...)}
}

// functions are those beyond the first release that the guard may call, each
// with the names it has had.
func functions() map[string][]string {
	versions := func(name string) []string { return []string{name, name + "_v2", name + "_v3"} }
	f := map[string][]string{}
	for _, name := range []string{"nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses",
		"nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMigMode",
		"nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetComputeMode",
		"nvmlDeviceGetProcessUtilization", "nvmlDeviceGetMemoryLimits_v1", "nvmlSystemGetDriverVersion",
		"nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID", "nvmlDeviceGetName"} {
		f[name] = versions(name)
	}
	return f
}

// required are the functions without which nothing can be read.
var required = []string{"nvmlDeviceGetComputeRunningProcesses", "nvmlSystemGetDriverVersion", "nvmlDeviceGetCount",
	"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID"}

// open loads and initialises NVML, once.
func (d *Driver) open() error {
	if d.opened {
		return nil
	}
	if ret := d.library.Init(); ret != nvml.SUCCESS {
		return failure("initialise NVML", ret)
	}
	d.has = map[string]bool{}
	for name, versions := range functions() {
		for _, v := range versions {
			d.has[name] = d.has[name] || d.library.Extensions().LookupSymbol(v) == nil
		}
	}
	for _, name := range required {
		if !d.has[name] {
			return fmt.Errorf("initialise NVML: the library has no %s", name)
		}
	}
	version, ret := d.library.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		return failure("read the driver's version", ret)
	}
	d.opened, d.version, d.stale = true, version, true
	return nil
}

// Facts are what a driver reports about itself and its devices.
type Facts struct {
	Driver  string
	Devices []Device
}

// Device is one visible device or MIG instance.
type Device struct {
	ID, Name   string
	TotalBytes int64 // 0: the device does not report it
	Instance   bool  // of a device partitioned by MIG
	Exclusive  bool  // only an MPS server may hold a context
}

// Facts returns what there is, in bounded time.
func (d *Driver) Facts(ctx context.Context) (Facts, error) {
	return bounded(ctx, d.watchdog, func() (Facts, error) {
		if err := d.ready(); err != nil {
			return Facts{Driver: d.version}, err
		}
		facts := Facts{Driver: d.version}
		for _, dev := range d.devices {
			total, _, err := d.total(dev)
			if err != nil {
				return facts, err
			}
			facts.Devices = append(facts.Devices, Device{dev.id, dev.name, total, dev.instance, dev.exclusive})
		}
		return facts, nil
	})
}

// Unsupported returns why a driver of that version cannot be relied on inside a
// pod, or an empty text.
func (d *Driver) Unsupported(driver string) string {
	if d.options.NodePIDs {
		return ""
	}
	return unsupportedVersion(driver)
}
