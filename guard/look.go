package guard

import (
	"context"
	"time"
)

// Reader reads the devices.
type Reader interface {
	// Read returns the visible devices, each with its processes by PID and bytes
	// alone, in bounded time. A list may be repeated while it is younger than
	// maxAge and the device's total has not moved.
	Read(ctx context.Context, maxAge time.Duration) ([]Device, error)
	// Charge returns what the driver itself charges to the cgroup at that path on
	// a device, and the limit it holds it to (0: none). ok is false where it
	// keeps no such figure.
	Charge(ctx context.Context, device, cgroup string) (used, limit int64, ok bool)
}

// Namer tells which process of the pod a PID is.
type Namer interface {
	// Name fills in everything of a process but what a device says of it. A PID
	// that is no process of this pod comes back without a container.
	Name(p Process) Process
	// Cgroup returns a path at which the cgroup of the process can be opened, or
	// an empty text.
	Cgroup(pid int) string
}

// PodEyes look at the devices and name what they list. It is not safe for
// concurrent use.
type PodEyes struct {
	Reader Reader
	Namer  Namer
	named  map[string]Device // the last named list of each device
}

// Look implements Eyes.
func (e *PodEyes) Look(ctx context.Context, maxAge time.Duration) Sample {
	devices, err := e.Reader.Read(ctx, maxAge)
	if err != nil {
		return Sample{Taken: time.Now(), Fault: err.Error()}
	}
	if e.named == nil {
		e.named = map[string]Device{}
	}
	for i := range devices {
		devices[i] = e.name(ctx, devices[i])
	}
	return Sample{Taken: time.Now(), Devices: devices}
}

// name names the processes of a list that was not named before.
func (e *PodEyes) name(ctx context.Context, d Device) Device {
	if last, ok := e.named[d.ID]; ok && last.Listed.Equal(d.Listed) {
		d.Processes, d.Charges = last.Processes, last.Charges
		return d
	}
	named := make([]Process, 0, len(d.Processes))
	charged := map[string]bool{}
	for _, p := range d.Processes {
		p = e.Namer.Name(p)
		named = append(named, p)
		if p.Container != "" && !charged[p.Container] {
			charged[p.Container] = true
			d.Charges = e.charge(ctx, d, p)
		}
	}
	d.Processes = named
	e.named[d.ID] = d
	return d
}

func (e *PodEyes) charge(ctx context.Context, d Device, p Process) []Charge {
	path := e.Namer.Cgroup(p.PID)
	if path == "" {
		return d.Charges
	}
	used, limit, ok := e.Reader.Charge(ctx, d.ID, path)
	if !ok {
		return d.Charges
	}
	return append(d.Charges, Charge{Container: p.Container, UsedBytes: used, LimitBytes: limit})
}
