package gpu

import (
	"context"
	"errors"
	"math"
	"slices"
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

// list is what was last listed on a device.
type list struct {
	at        time.Time
	asOf      uint64
	used      int64
	processes []guard.Process
}

// Read implements guard.Reader.
func (d *Driver) Read(ctx context.Context, maxAge time.Duration) ([]guard.Device, error) {
	return bounded(ctx, d.watchdog, func() ([]guard.Device, error) {
		if err := d.ready(); err != nil {
			return nil, err
		}
		unsupported := d.Unsupported(d.version)
		devices := make([]guard.Device, 0, len(d.devices))
		for _, dev := range d.devices {
			devices = append(devices, d.read(dev, maxAge, unsupported))
		}
		return devices, nil
	})
}

// read reads one device. What goes wrong is the fault of that device alone.
func (d *Driver) read(dev *device, maxAge time.Duration, unsupported string) guard.Device {
	seen := guard.Device{ID: dev.id, Model: dev.name, Fault: unsupported}
	total, used, err := d.total(dev)
	if err != nil {
		return d.fail(seen, err)
	}
	seen.TotalBytes, seen.UsedBytes = total, used
	if unsupported != "" {
		return seen
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
	return seen
}

// fail returns a device with the reason why it could not be read.
func (d *Driver) fail(seen guard.Device, err error) guard.Device {
	seen.Fault, d.stale = err.Error(), true
	if errors.Is(err, nvml.ERROR_LIB_RM_VERSION_MISMATCH) {
		d.updated.Store(true)
	}
	return seen
}

// due reports whether the device's processes are to be listed again.
func (dev *device) due(used int64, totalUnknown bool, maxAge time.Duration) bool {
	age := time.Since(dev.last.at)
	if dev.last.at.IsZero() || totalUnknown || age >= maxAge {
		return true
	}
	return differ(used, dev.last.used) && (len(dev.last.processes) > 0 || age >= othersListAge)
}

// differ reports whether two totals of a device are more than a step apart.
func differ(a, b int64) bool { return a-b >= totalStep || b-a >= totalStep }

// total returns a device's memory and what is in use of it, by everyone; zeros
// where it does not report them.
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
	infos, ret := dev.handle.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS {
		return nil, failure("list the processes of "+dev.id, ret)
	}
	merged := merge(nil, infos, total, false)
	if d.has["nvmlDeviceGetGraphicsRunningProcesses"] {
		infos, ret = dev.handle.GetGraphicsRunningProcesses()
		if ret != nvml.SUCCESS && !absent(ret) {
			return nil, failure("list the graphics processes of "+dev.id, ret)
		}
		merged = merge(merged, infos, total, false)
	}
	if d.has["nvmlDeviceGetMPSComputeRunningProcesses"] {
		infos, ret = dev.handle.GetMPSComputeRunningProcesses()
		if ret != nvml.SUCCESS && !absent(ret) {
			return nil, failure("list the MPS clients of "+dev.id, ret)
		}
		merged = merge(merged, infos, total, true)
	}
	for i := range merged {
		merged[i].MPS = merged[i].MPS || dev.exclusive || d.options.MPS
	}
	return merged, nil
}

// merge adds a list to what was merged. A figure that is all ones, zero, or more
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
