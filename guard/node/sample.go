package node

import (
	"context"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/cgroup"
	"github.com/gpuslice/gpuslice/guard/proc"
)

// Sample is one reading of every device of the node.
type Sample struct {
	Taken   time.Time
	Fault   string // why nothing could be read at all; empty: Devices are valid
	Devices []Device
}

// Device is what one sample found on one device, with everybody's processes.
type Device struct {
	guard.Device           // its Processes are empty
	Processes    []Process // each PID once
}

// Process is one that a device lists, with the container that it is in.
type Process struct {
	guard.Process               // its Container is empty
	Member        cgroup.Member // empty: it is in no container of a pod
}

// Reader reads the devices of the node.
type Reader interface {
	// Read returns them as guard.Reader does.
	Read(ctx context.Context, maxAge time.Duration) ([]guard.Device, error)
}

// sampler reads the devices and attributes the processes that they list.
type sampler struct {
	reader Reader
	node   *proc.Node
	last   map[string]Device // the last attributed list of each device
}

func (s *sampler) sample(ctx context.Context, maxAge time.Duration) Sample {
	began, ticks := time.Now(), s.node.Now()
	devices, err := s.reader.Read(ctx, maxAge)
	if err != nil {
		return Sample{Taken: time.Now(), Fault: err.Error()}
	}
	next := Sample{}
	last := map[string]Device{}
	for _, d := range devices {
		attributed := s.attribute(d, began, ticks)
		last[d.ID] = attributed
		next.Devices = append(next.Devices, attributed)
	}
	s.last, next.Taken = last, time.Now()
	return next
}

// attribute attributes the processes of a list that was not attributed before. A
// process that started after the reading began may have the PID of one that was
// listed.
func (s *sampler) attribute(d guard.Device, began time.Time, ticks uint64) Device {
	listed := d.Processes
	d.Processes = nil
	if last, known := s.last[d.ID]; known && last.Listed.Equal(d.Listed) {
		return Device{d, last.Processes}
	}
	attributed := Device{Device: d}
	for _, p := range listed {
		named, m := s.node.Name(p)
		if named.Start > ticks || d.Listed.Before(began) {
			named, m = p, cgroup.Member{}
		}
		attributed.Processes = append(attributed.Processes, Process{named, m})
	}
	return attributed
}

// of returns the part of a sample that is a pod's. A device that fails is the
// fault of pods that were seen on it, and of those that were seen on fewer devices
// than they were given.
func (s Sample) of(p Pod, seen map[string]bool) guard.Sample {
	part := guard.Sample{Taken: s.Taken, Fault: s.Fault}
	for _, d := range s.Devices {
		own := d.Device
		for _, process := range d.Processes {
			if process.Member.PodUID != p.UID {
				continue
			}
			named := process.Process
			named.Container = p.ContainerName(process.Member.ContainerID)
			named.MPS = named.MPS || p.UsesMPS()
			own.Processes = append(own.Processes, named)
			seen[d.ID] = true
		}
		if own.Fault == "" || seen[d.ID] || len(seen) < p.Given() {
			part.Devices = append(part.Devices, own)
		}
	}
	return part
}
