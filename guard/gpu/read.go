package gpu

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpuslice/gpuslice/guard"
)

const (
	// totalStep is how far a device's total may move before its processes are listed
	// again: less than the smallest context (107 MiB is the smallest reported).
	totalStep = 8 << 20
	// othersListAge is how old the list may be of a device that listed nothing of
	// this pod, however its total moves: its tenants are others.
	othersListAge = time.Second
)

// list is the last list of a device.
type list struct {
	at        time.Time
	asOf      uint64
	used      int64
	processes []guard.Process
}

// Read implements guard.Reader.
func (d *Driver) Read(ctx context.Context, maxAge time.Duration) ([]guard.Device, error) {
	devices, err := d.known(ctx)
	if err != nil {
		d.note(errors.Is(err, nvml.ERROR_UNKNOWN))
		return nil, err
	}
	unsupported := d.Unsupported(d.version)
	read := make([]guard.Device, 0, len(devices))
	hung, unknown := 0, 0
	for i, r := range ask(ctx, d, reading, devices, func(dev *device, late bool) (result, error) {
		if late { // its list would be older than the sample that it comes with
			dev.last = list{}
			defer func() { dev.last = list{} }()
		}
		return d.read(dev, maxAge, unsupported), nil
	}) {
		if err = r.err; err != nil {
			hung++
			r.value = result{Device: guard.Device{ID: devices[i].id, Model: devices[i].name, Fault: err.Error()}}
		}
		if errors.Is(r.value.cause, nvml.ERROR_UNKNOWN) {
			unknown++
		}
		read = append(read, r.value.Device)
	}
	d.note(unknown == len(devices))
	if hung == len(devices) {
		return nil, err
	}
	return read, nil
}

// result is a device as it was read, and the cause of its fault; nil: the driver reported none.
type result struct {
	guard.Device
	cause error
}

// answer is the result of a call of one device.
type answer[T any] struct {
	value T
	err   error
}

// ask calls all devices at once and returns their answers in order: a device for
// which the driver does not answer in time delays or hides no other. Instances of one
// device are called one after the other.
func ask[T any](ctx context.Context, d *Driver, c call, devices []*device, f func(dev *device, late bool) (T, error)) []answer[T] {
	starved := d.watchdog.starved()
	answers := make([]answer[T], len(devices))
	var calls sync.WaitGroup
	for first := 0; first < len(devices); {
		last := first + 1
		for last < len(devices) && devices[last].index == devices[first].index {
			last++
		}
		same, into := devices[first:last], answers[first:last]
		calls.Go(func() {
			got, err := boundedSince(ctx, d.slot(same[0].index), starved, c, func(late bool) ([]answer[T], error) {
				got := make([]answer[T], len(same))
				for i, dev := range same {
					got[i].value, got[i].err = f(dev, late)
				}
				return got, nil
			})
			for i := range into {
				into[i].err = err
			}
			copy(into, got)
		})
		first = last
	}
	calls.Wait()
	return answers
}

// slot returns the watchdog of the device with that index.
func (d *Driver) slot(index int) *watchdog {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.slots[index] == nil {
		d.slots[index] = newWatchdog(d.options.Limit)
	}
	return d.slots[index]
}

// read reads one device. A failure is the fault of that device alone.
func (d *Driver) read(dev *device, maxAge time.Duration, unsupported string) result {
	seen := guard.Device{ID: dev.id, Model: dev.name, Fault: unsupported}
	total, used, err := d.total(dev)
	if err != nil {
		return d.fail(seen, err)
	}
	seen.TotalBytes, seen.UsedBytes = total, used
	if unsupported != "" {
		return result{Device: seen}
	}
	if dev.due(used, total == 0, maxAge) {
		began := d.options.Now()
		processes, err := d.processes(dev, total)
		if err != nil {
			return d.fail(seen, err)
		}
		_, now, err := d.total(dev)
		if err != nil {
			return d.fail(seen, err)
		}
		seen.Moving = differ(used, now)
		dev.last = list{at: time.Now(), asOf: began, used: used, processes: processes}
	}
	seen.Listed, seen.AsOf = dev.last.at, dev.last.asOf
	seen.Processes = slices.Clone(dev.last.processes)
	return result{Device: seen}
}

// fail returns a device with the reason why it could not be read.
func (d *Driver) fail(seen guard.Device, err error) result {
	seen.Fault = err.Error()
	d.stale.Store(true)
	if errors.Is(err, nvml.ERROR_LIB_RM_VERSION_MISMATCH) {
		d.updated.Store(true)
	}
	return result{seen, err}
}

// due reports whether the device's processes are to be listed again.
func (dev *device) due(used int64, totalUnknown bool, maxAge time.Duration) bool {
	age := time.Since(dev.last.at)
	// Without a total nothing shows that the list has changed.
	if dev.last.at.IsZero() || totalUnknown || age >= maxAge {
		return true
	}
	// Where nothing of this pod is listed, the total moves by what others do.
	return differ(used, dev.last.used) && (len(dev.last.processes) > 0 || age >= othersListAge)
}

// differ reports whether two totals of a device are more than a step apart.
func differ(a, b int64) bool { return a-b >= totalStep || b-a >= totalStep }

// total returns a device's memory and the part in use, by everyone; zeros if it
// does not report them.
func (d *Driver) total(dev *device) (total, used int64, err error) {
	if dev.missing != nil {
		return 0, 0, dev.missing
	}
	if !d.has["nvmlDeviceGetMemoryInfo"] {
		return 0, 0, nil
	}
	info, ret := dev.handle.GetMemoryInfo()
	if absent(ret) {
		return 0, 0, nil
	}
	if ret != nvml.SUCCESS {
		return 0, 0, failure("read the memory of "+dev.id, ret)
	}
	return signed(info.Total), signed(info.Used), nil
}

// processes lists who uses memory on a device: compute, graphics and MPS, each
// PID once with the largest figure. A driver may list one twice, each time in
// full, so that a sum would be wrong.
func (d *Driver) processes(dev *device, total int64) ([]guard.Process, error) {
	var merged []guard.Process
	for _, l := range []struct {
		function, what string
		mps            bool
		list           func() ([]nvml.ProcessInfo, nvml.Return)
	}{
		{"nvmlDeviceGetComputeRunningProcesses", "processes", false, dev.handle.GetComputeRunningProcesses},
		{"nvmlDeviceGetGraphicsRunningProcesses", "graphics processes", false, dev.handle.GetGraphicsRunningProcesses},
		{"nvmlDeviceGetMPSComputeRunningProcesses", "MPS clients", true, dev.handle.GetMPSComputeRunningProcesses},
	} {
		if !d.has[l.function] {
			continue
		}
		infos, ret := l.list()
		if ret != nvml.SUCCESS && (slices.Contains(required, l.function) || !absent(ret)) {
			return nil, failure("list the "+l.what+" of "+dev.id, ret)
		}
		merged = merge(merged, infos, total, l.mps)
	}
	for i := range merged {
		merged[i].MPS = merged[i].MPS || dev.exclusive || d.options.MPS
	}
	return merged, nil
}

// merge adds a list to the merged one. A figure that is all ones, zero, or more
// than the device has is none.
func merge(into []guard.Process, infos []nvml.ProcessInfo, total int64, mps bool) []guard.Process {
	for _, info := range infos {
		i := slices.IndexFunc(into, func(p guard.Process) bool { return p.PID == int(info.Pid) })
		if i < 0 {
			into = append(into, guard.Process{PID: int(info.Pid)})
			i = len(into) - 1
		}
		p := &into[i]
		p.MPS = p.MPS || mps
		if info.UsedGpuMemory == 0 || info.UsedGpuMemory > math.MaxInt64 || total > 0 && int64(info.UsedGpuMemory) > total {
			continue
		}
		p.UsedBytes, p.Known = max(p.UsedBytes, int64(info.UsedGpuMemory)), true
	}
	return into
}

func signed(bytes uint64) int64 {
	if bytes > math.MaxInt64 {
		return 0
	}
	return int64(bytes)
}

// charge is the driver's charge to a cgroup.
type charge struct {
	used, limit int64
	ok          bool
}

// Charge implements guard.Reader. Drivers from 615 on keep the figure.
func (d *Driver) Charge(ctx context.Context, id, cgroup string) (used, limit int64, ok bool) {
	named := slices.DeleteFunc(d.found(), func(dev *device) bool {
		return dev.id != id || dev.missing != nil || dev.instance || !d.has["nvmlDeviceGetMemoryLimits_v1"]
	})
	for _, c := range ask(ctx, d, charging, named,
		func(dev *device, _ bool) (charge, error) { return read(dev.handle.GetMemoryLimits_v1(cgroup)), nil }) {
		return c.value.used, c.value.limit, c.value.ok && c.err == nil
	}
	return 0, 0, false
}

func read(l nvml.MemoryLimits_v1, ret nvml.Return) charge {
	if ret != nvml.SUCCESS || l.CurrentUsed > math.MaxInt64 {
		return charge{}
	}
	return charge{used: int64(l.CurrentUsed), limit: signed(l.HardLimit), ok: true}
}
