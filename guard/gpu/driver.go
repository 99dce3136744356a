package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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
	// MPS: the pod is a client of an MPS daemon, so that each of its processes may
	// be a client.
	MPS bool
	// Now returns the time as start times of processes count it, for Device.AsOf;
	// nil: nobody needs to know.
	Now func() uint64
}

// Driver reads devices. It implements guard.Reader and is safe for concurrent
// use. Use New.
type Driver struct {
	options  Options
	watchdog *watchdog // of calls that concern no device
	library  nvml.Interface

	search  sync.Mutex // of devices
	foundAt time.Time

	// These belong to the call that the watchdog lets in, and are only read once a
	// device is found.
	opened  bool
	version string
	has     map[string]bool

	mu      sync.Mutex
	devices []*device
	slots   map[int]*watchdog // of the devices, by their index

	stale   atomic.Bool // the handles are to be opened again
	updated atomic.Bool
	since   atomic.Pointer[time.Time] // every device has answered with an unknown error since then; nil: not now
	patient time.Duration             // with such errors
}

// device is one device or MIG instance, and its last list, which belongs to the
// call that the watchdog of its index lets in.
type device struct {
	handle    nvml.Device
	index     int   // as NVML counts them, of its device where it is an instance
	missing   error // why it has no handle
	id, name  string
	instance  bool
	exclusive bool // compute mode: only an MPS server may hold a context
	last      list
	seen      uint64 // time stamp of the newest utilization sample
}

// New returns a driver that loads NVML with its first read, and tries again with
// each read until that succeeds.
func New(o Options) *Driver {
	if o.Now == nil {
		o.Now = func() uint64 { return 0 }
	}
	if o.Limit == 0 {
		o.Limit = 1500 * time.Millisecond
	}
	var options []nvml.LibraryOption
	if o.Library != "" {
		options = append(options, nvml.WithLibraryPath(o.Library))
	}
	return &Driver{options: o, watchdog: newWatchdog(o.Limit), library: nvml.New(options...), slots: map[int]*watchdog{}, patient: time.Minute}
}

// functions are those beyond the first release that the guard may call, each
// with the names under which go-nvml calls it: it takes the newest that the
// library has, and of a function that is not here the only one that it knows.
func functions() map[string][]string {
	versions := func(name string, newest int) []string {
		names := []string{name}
		for v := 2; v <= newest; v++ {
			names = append(names, fmt.Sprintf("%s_v%d", name, v))
		}
		return names
	}
	f := map[string][]string{}
	for name, newest := range map[string]int{"nvmlDeviceGetComputeRunningProcesses": 3, "nvmlDeviceGetGraphicsRunningProcesses": 3,
		"nvmlDeviceGetMPSComputeRunningProcesses": 3, "nvmlDeviceGetCount": 2, "nvmlDeviceGetHandleByIndex": 2,
		"nvmlDeviceGetMemoryInfo": 1, "nvmlDeviceGetMigMode": 1, "nvmlDeviceGetMaxMigDeviceCount": 1,
		"nvmlDeviceGetMigDeviceHandleByIndex": 1, "nvmlDeviceGetComputeMode": 1, "nvmlDeviceGetProcessUtilization": 1,
		"nvmlDeviceGetUtilizationRates": 1,
		"nvmlDeviceGetMemoryLimits_v1":  1, "nvmlSystemGetDriverVersion": 1, "nvmlDeviceGetUUID": 1, "nvmlDeviceGetName": 1} {
		f[name] = versions(name, newest)
	}
	return f
}

// required are the functions without which nothing can be read.
var required = []string{"nvmlDeviceGetComputeRunningProcesses", "nvmlSystemGetDriverVersion", "nvmlDeviceGetCount",
	"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID"}

// open loads and initialises NVML, once. It returns the driver's version.
func (d *Driver) open(ctx context.Context) (version string, err error) {
	return bounded(ctx, d.watchdog, initializing, func(bool) (string, error) {
		err := d.initialize()
		return d.version, err
	})
}

// initialize loads and initialises NVML, once.
func (d *Driver) initialize() error {
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
	d.opened, d.version = true, version
	d.stale.Store(true)
	return nil
}

// Facts are a driver's facts about itself and its devices.
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

// Facts returns the driver's facts, in bounded time.
func (d *Driver) Facts(ctx context.Context) (Facts, error) {
	version, err := d.open(ctx)
	if err != nil {
		return Facts{}, err
	}
	facts := Facts{Driver: version}
	devices, err := d.known(ctx)
	if err != nil {
		return facts, err
	}
	devices = slices.DeleteFunc(devices, func(dev *device) bool { return dev.missing != nil })
	for i, total := range ask(ctx, d, reading, devices, func(dev *device, _ bool) (int64, error) {
		total, _, err := d.total(dev)
		return total, err
	}) {
		if total.err != nil {
			return facts, total.err
		}
		dev := devices[i]
		facts.Devices = append(facts.Devices, Device{dev.id, dev.name, total.value, dev.instance, dev.exclusive})
	}
	return facts, nil
}

// Errors that only a new container cures.
var (
	ErrUpdated = errors.New("the driver was updated under the guard: it is started again with the new library")
	// ErrCutOff is what a container has whose devices were taken from its cgroup (NVIDIA/nvidia-docker issue 1730).
	ErrCutOff = errors.New("every call of NVML answers Unknown Error, as after systemctl daemon-reload took the devices from the container: " +
		"the guard is started again in a new one")
)

// Ended returns the error that stops the guard, ErrUpdated or ErrCutOff, since it reads no device again in this container; nil: there
// is none.
func (d *Driver) Ended() error {
	if d.updated.Load() {
		return ErrUpdated
	}
	if since := d.since.Load(); since != nil && time.Since(*since) >= d.patient {
		return ErrCutOff
	}
	return nil
}

// note keeps since when every reading has failed with an unknown error.
func (d *Driver) note(unknown bool) {
	if !unknown {
		d.since.Store(nil)
		return
	}
	now := time.Now()
	d.since.CompareAndSwap(nil, &now)
}
