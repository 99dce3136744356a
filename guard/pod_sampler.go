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
	// Charge returns the driver's own charge to the cgroup at that path on a
	// device, and the limit it enforces (0: none). ok is false if it keeps no such
	// figure.
	Charge(ctx context.Context, device, cgroup string) (used, limit int64, ok bool)
}

// Namer returns which process of the pod a PID is.
type Namer interface {
	// Name fills in everything of a process but the device's figures. A PID that is
	// no process of this pod is returned without a container.
	Name(p Process) Process
	// Cgroup returns a path at which the cgroup of the process can be opened, or
	// an empty text.
	Cgroup(pid int) string
}

// PodSampler reads the devices and names the processes that they list. It is not
// safe for concurrent use.
type PodSampler struct {
	Reader    Reader
	Namer     Namer
	named     map[string]Device // the last named list of each device
	sightings Sightings[string]
}

// Sample implements Sampler.
func (s *PodSampler) Sample(ctx context.Context, maxAge time.Duration) Sample {
	devices, err := s.Reader.Read(ctx, maxAge)
	if err != nil {
		return Sample{Taken: time.Now(), Fault: err.Error()}
	}
	if s.named == nil {
		s.named = map[string]Device{}
	}
	for i := range devices {
		devices[i] = s.name(ctx, devices[i])
	}
	return Sample{Taken: time.Now(), Devices: devices}
}

// name names the processes of a list that was not named before.
func (s *PodSampler) name(ctx context.Context, d Device) Device {
	if last, ok := s.named[d.ID]; ok && last.Listed.Equal(d.Listed) {
		d.Processes, d.Charges = last.Processes, last.Charges
		return d
	}
	named := make([]Process, 0, len(d.Processes))
	charged := map[string]bool{}
	for _, sighted := range s.sightings.Identify(d, s.where) {
		p := sighted.Process
		p.Container = sighted.At
		named = append(named, p)
		// All processes of a container share its cgroup: any of them has the charge.
		if p.Container != "" && !charged[p.Container] {
			charged[p.Container] = true
			d.Charges = s.charge(ctx, d, p)
		}
	}
	d.Processes = named
	s.named[d.ID] = d
	return d
}

// where returns a PID's process at present, and its container.
func (s *PodSampler) where(p Process) (Process, string) {
	p = s.Namer.Name(p)
	return p, p.Container
}

func (s *PodSampler) charge(ctx context.Context, d Device, p Process) []Charge {
	path := s.Namer.Cgroup(p.PID)
	if path == "" {
		return d.Charges
	}
	used, limit, ok := s.Reader.Charge(ctx, d.ID, path)
	if !ok {
		return d.Charges
	}
	return append(d.Charges, Charge{Container: p.Container, UsedBytes: used, LimitBytes: limit})
}
