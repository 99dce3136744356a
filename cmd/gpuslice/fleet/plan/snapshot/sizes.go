package snapshot

import (
	"cmp"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/sizing"
)

const (
	headroomPercent = 10 // that Observed adds to a peak
	// Coverage is the part of workloads that stay within their recommended size, that of gpuslice recommend.
	Coverage = 0.95
	// givenShare is the part of what is given that a process takes which takes all it is given: its peak is not what it needs.
	givenShare = 0.7
)

// useOf is the measured use of a pod; nil: nothing was measured.
func useOf(p *inventory.Pod) *demand.Use {
	var u *demand.Use
	bytes := int64(0)
	for i := range p.Slices {
		for _, one := range p.Slices[i].Usage {
			if u == nil {
				u = &demand.Use{}
			}
			bytes += max(one.PeakBytes, one.UsedBytes)
			if one.Utilization != nil {
				if u.Utilized == nil {
					u.Utilized = new(float64)
				}
				*u.Utilized += *one.Utilization
			}
		}
	}
	if u != nil {
		u.Peak = bytes >> 20
	}
	return u
}

// observe counts what was measured: with --sizes the memory, and always the part of the device's multiprocessors, so that pods that
// share one use 80 % at most.
func (r *reader) observe(out *demand.Pod, p *inventory.Pod) {
	if out.Use = useOf(p); out.Use == nil {
		r.counts[noteUsage]++
	}
	if out.Devices == 1 {
		if size := r.size(out, p); size > 0 {
			out.DeviceMemory, out.Share = size, 1
		}
	}
	if out.Part() && out.Use != nil && out.Use.Utilized != nil {
		out.Share = min(max(out.Share, int(*out.Use.Utilized/mostUtilized*demand.Whole)), demand.Whole)
	}
}

// size is the size that --sizes gives a pod, in MiB; 0: that of its request.
func (r *reader) size(out *demand.Pod, p *inventory.Pod) int64 {
	peak := int64(0)
	if out.Use != nil {
		peak = out.Use.Peak
	}
	device, size := r.deviceOf(out), int64(0)
	switch r.options.Sizes {
	case Observed:
		if peak > 0 {
			size = peak + peak*headroomPercent/100 + 1
		}
	case Recommended:
		if size = r.recommended(p, peak, cmp.Or(out.DeviceMemory, device)); size == 0 {
			r.counts[noteSize]++
		}
	}
	if device > 0 { // a pod that fits on a device today fits on it whatever its size is to be
		size = min(size, device)
	}
	return size
}

// deviceOf is the memory of the device that a pod has, or of the largest that it may get, in MiB; 0: unknown.
func (r *reader) deviceOf(out *demand.Pod) (most int64) {
	if out.Node > 0 {
		return r.out.Kinds[r.out.Nodes[out.Node-1].Kind].DeviceMemory
	}
	for kind := range r.out.Kinds {
		k := &r.out.Kinds[kind]
		if out.MayUse(kind) && k.Devices > 0 {
			if k.DeviceMemory == 0 {
				return 0
			}
			most = max(most, k.DeviceMemory)
		}
	}
	return most
}

// recommended is the size of a history of samples, else that of a table for the peak since the pod started, in MiB; given is
// what the pod has.
func (r *reader) recommended(p *inventory.Pod, peak, given int64) int64 {
	if r.options.Recommend != nil {
		if size, sampled := r.options.Recommend(p); sampled {
			return size
		}
	}
	if peak == 0 || p.Bound.IsZero() || given > 0 && float64(peak) >= givenShare*float64(given) {
		return 0
	}
	size, _, ok := sizing.Calibrate(nil).SizeOrTable(float64(peak), r.from.Taken.Sub(p.Bound).Hours(), Coverage)
	if !ok {
		return 0
	}
	r.counts[noteTable]++
	return int64(size) + 1
}
