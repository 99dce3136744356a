package gpu

import (
	"context"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpuslice/gpuslice/guard"
)

// Utilizations returns how busy the processes that the devices list kept them
// since the last call. A PID that is sampled and not listed, or sampled twice,
// is left out. Where the driver does not attribute it there is none.
func (d *Driver) Utilizations(ctx context.Context) (found []guard.Utilization) {
	for _, a := range d.Activities(ctx) {
		found = append(found, a.Utilizations...)
	}
	return found
}

// clockStep is how far a clock that is kept in time is set back, in microseconds.
const clockStep = 1_000_000

// Activities returns the activity of each device since the last call, for devices
// that report it.
func (d *Driver) Activities(ctx context.Context) []guard.Activity {
	devices := slices.DeleteFunc(d.found(), func(dev *device) bool { return dev.instance || dev.missing != nil })
	if len(devices) == 0 || !d.has["nvmlDeviceGetProcessUtilization"] || !d.options.NodePIDs && Older(d.version, firstUtilization) {
		return nil
	}
	var found []guard.Activity
	for _, a := range ask(ctx, d, sampling, devices, func(dev *device, _ bool) (*guard.Activity, error) {
		if time.Since(dev.last.at) >= time.Minute {
			return nil, nil
		}
		return dev.activity(d.has["nvmlDeviceGetUtilizationRates"]), nil
	}) {
		if a.err == nil && a.value != nil {
			found = append(found, *a.value)
		}
	}
	return found
}

// activity returns nil where the device does not report it.
func (dev *device) activity(hasRates bool) *guard.Activity {
	now := uint64(time.Now().UnixMicro())
	if dev.seen > now+clockStep { // the clock was set back, and later activity has older time stamps
		dev.seen = 0
		return nil
	}
	samples, ret := dev.handle.GetProcessUtilization(dev.seen)
	nothing := ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INSUFFICIENT_SIZE && len(samples) == 0
	// A device that is busy without samples has lost them, and who ran is unknown.
	if ret != nvml.SUCCESS && !nothing || nothing && hasRates && dev.busy() {
		return nil
	}
	a := &guard.Activity{Device: dev.id, Complete: true, Ran: map[int]bool{}, Sampled: map[int]bool{}}
	percent, times := map[int]int{}, map[int]int{}
	for _, s := range samples {
		dev.seen = max(dev.seen, min(s.TimeStamp, now))
		percent[int(s.Pid)] = int(s.SmUtil)
		times[int(s.Pid)]++
		a.Sampled[int(s.Pid)] = true
		if s.SmUtil > 0 || s.MemUtil > 0 || s.EncUtil > 0 || s.DecUtil > 0 {
			a.Ran[int(s.Pid)] = true
		}
	}
	listed := 0
	for _, p := range dev.last.processes {
		if a.Ran[p.PID] {
			listed++
		}
		if times[p.PID] == 1 && percent[p.PID] <= 100 {
			a.Utilizations = append(a.Utilizations, guard.Utilization{Device: dev.id, PID: p.PID, Percent: percent[p.PID]})
		}
	}
	a.Complete = listed == len(a.Ran)
	return a
}

// busy reports whether the device itself ran something lately, whoever it was: a
// driver that reports so and names nobody does not attribute use.
func (dev *device) busy() bool {
	rates, ret := dev.handle.GetUtilizationRates()
	return ret == nvml.SUCCESS && (rates.Gpu > 0 || rates.Memory > 0)
}
