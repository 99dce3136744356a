package peaks

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/leader/days"
	"github.com/gpuslice/gpuslice/webhook/leader/workload"
)

// NamePrefix begins the names of the ConfigMaps; the UTC day follows, as in gpuslice-peaks-2026-11-26. Each has Label.
const (
	NamePrefix = "gpuslice-peaks-"
	Label      = api.Domain + "/peaks"

	dayKey = "peaks.json.gz"
)

func storeIn(client kubernetes.Interface, namespace string) days.Store {
	return days.Store{Client: client, Namespace: namespace, What: "what workloads used", Prefix: NamePrefix, Label: Label}
}

// read reads a ConfigMap of a day.
func read(m *corev1.ConfigMap, day time.Time) (*Day, error) {
	d, err := decode(m.BinaryData[dayKey], day.Format(time.DateOnly))
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", m.Name, err)
	}
	return d, nil
}

// Samples take what a workload used, in seconds since the epoch and MiB, and when a container of it started.
type Samples interface {
	Add(seconds, mib float64) bool
	Start(seconds float64)
}

// Workload is the record of one container.
type Workload struct {
	Memory Samples
	// Terminated counts hours in which a guard terminated a process, or the kernel one for want of host memory, which cuts its peak off.
	Terminated int
	Slice      api.MiB // that its pods had last; 0: unknown
	Device     api.MiB // memory of the largest GPU that they were on last; 0: unknown
	Pods       int     // that it has now

	last time.Time // day
}

// Record is the record of all workloads.
type Record struct {
	Workloads map[workload.Container]*Workload
	// Unrecorded is how many pods had more than one slice, and LeftOut how many workloads had no room, the most at one time.
	Unrecorded, LeftOut int
	Unread              []error // why days cannot be read

	last    time.Time // day
	samples func() Samples
}

// Read reads the days from the one of a time until before another time. samples makes what a workload's are added to.
func Read(ctx context.Context, client kubernetes.Interface, namespace string, from, until time.Time, samples func() Samples) (*Record, error) {
	r := &Record{Workloads: map[workload.Container]*Workload{}, samples: samples}
	err := storeIn(client, namespace).Each(ctx, from, until, func(day time.Time, m *corev1.ConfigMap) {
		d, err := read(m, day)
		if err != nil {
			r.Unread = append(r.Unread, err)
			return
		}
		r.add(day, d)
	})
	if err != nil {
		return nil, err
	}
	for _, w := range r.Workloads {
		if w.last.Before(r.last) {
			w.Pods = 0
		}
	}
	return r, nil
}

func (r *Record) add(day time.Time, d *Day) {
	r.Unrecorded, r.LeftOut = max(r.Unrecorded, d.Unrecorded), max(r.LeftOut, d.LeftOut)
	if day.After(r.last) {
		r.last = day
	}
	for i := range d.Lines {
		l := &d.Lines[i]
		w := r.Workloads[l.Container]
		if w == nil {
			w = &Workload{Memory: r.samples()}
			r.Workloads[l.Container] = w
		}
		w.add(day, l)
	}
}

func (w *Workload) add(day time.Time, l *Line) {
	if !day.Before(w.last) {
		w.Slice, w.Device, w.Pods, w.last = api.MiB(l.Slice), api.MiB(l.Device), l.Pods, day
	}
	w.Terminated += (l.Terminated | l.OOMKilled).count()
	for hour, peak := range l.Peaks {
		mib := peak.mib()
		if peak == levelOf(l.Device) {
			mib = float64(l.Device) // rounded up, it would be more than the GPU has
		}
		at := float64(day.Unix() + int64(hour)*int64(time.Hour/time.Second))
		if l.Started.has(hour) {
			w.Memory.Start(at)
		}
		for slot := range slotsOfHour {
			if l.Seen[hour]>>slot&1 == 1 {
				w.Memory.Add(at+float64(slot)*slotLength.Seconds(), mib)
			}
		}
	}
}
