package gpu

import (
	"context"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// charge is what the driver charges a cgroup.
type charge struct {
	used, limit int64
	ok          bool
}

// Charge implements guard.Reader. Drivers from 615 on keep the figure.
func (d *Driver) Charge(ctx context.Context, id, cgroup string) (used, limit int64, ok bool) {
	c, err := bounded(ctx, d.watchdog, func() (charge, error) {
		for _, dev := range d.devices {
			if dev.id == id && dev.missing == nil && d.has["nvmlDeviceGetMemoryLimits_v1"] && !dev.instance {
				return read(dev.handle.GetMemoryLimits_v1(cgroup)), nil
			}
		}
		return charge{}, nil
	})
	return c.used, c.limit, c.ok && err == nil
}

func read(l nvml.MemoryLimits_v1, ret nvml.Return) charge {
	if ret != nvml.SUCCESS || l.CurrentUsed > math.MaxInt64 {
		return charge{}
	}
	return charge{used: int64(l.CurrentUsed), limit: signed(l.HardLimit), ok: true}
}

// Utilization is how busy one process kept a device. It carries a PID for a
// metric's sake: a driver may hand out another namespace's PIDs here, so that it
// is no Process and nothing can be signaled by it.
type Utilization struct {
	Device  string
	PID     int
	Percent int // of the multiprocessors
}

// Utilizations returns how busy the processes that the devices list kept them
// since the last call. A PID that is sampled and not listed, or sampled twice,
// is left out. Where the driver does not attribute it there is none.
func (d *Driver) Utilizations(ctx context.Context) []Utilization {
	found, err := bounded(ctx, d.watchdog, func() ([]Utilization, error) {
		if !d.opened || !d.has["nvmlDeviceGetProcessUtilization"] || !d.options.NodePIDs && Older(d.version, firstUtilization) {
			return nil, nil
		}
		var found []Utilization
		for _, dev := range d.devices {
			if !dev.instance && dev.missing == nil && time.Since(dev.last.at) < time.Minute {
				found = append(found, dev.utilizations()...)
			}
		}
		return found, nil
	})
	if err != nil {
		return nil
	}
	return found
}

func (dev *device) utilizations() []Utilization {
	samples, ret := dev.handle.GetProcessUtilization(dev.seen)
	if ret != nvml.SUCCESS {
		return nil
	}
	percent, times := map[int]int{}, map[int]int{}
	for _, s := range samples {
		dev.seen = max(dev.seen, s.TimeStamp)
		percent[int(s.Pid)] = int(s.SmUtil)
		times[int(s.Pid)]++
	}
	var found []Utilization
	for _, p := range dev.last.processes {
		if times[p.PID] == 1 && percent[p.PID] <= 100 {
			found = append(found, Utilization{dev.id, p.PID, percent[p.PID]})
		}
	}
	return found
}
