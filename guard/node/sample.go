package node

import (
	"context"
	"fmt"
	"slices"
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

// Device is the result of one sample on one device, with everybody's processes.
type Device struct {
	guard.Device           // its Processes are empty, Everyone is as the agent's pods see it
	Processes    []Process // each PID once
}

// Process is one that a device lists, with the container that its memory belongs
// to. Its own Container is empty.
type Process struct {
	guard.Process
	Member cgroup.Member // empty: of no pod, or nobody knows
	// Where nobody knows: the container of the process that had the PID when it was
	// listed first, and of the one that has it by now.
	Was, Has cgroup.Member
}

// Reader reads the devices of the node.
type Reader interface {
	// Read returns them as guard.Reader does.
	Read(ctx context.Context, maxAge time.Duration) ([]guard.Device, error)
}

// sampler reads the devices and attributes the processes that they list.
type sampler struct {
	reader    Reader
	node      *proc.Node
	last      map[string]Device // the last attributed list of each device
	sightings guard.Sightings[cgroup.Member]
}

func (s *sampler) sample(ctx context.Context, maxAge time.Duration) Sample {
	devices, err := s.reader.Read(ctx, maxAge)
	if err != nil {
		return Sample{Taken: time.Now(), Fault: err.Error()}
	}
	next := Sample{}
	last := map[string]Device{}
	for _, d := range devices {
		attributed := s.attribute(d)
		last[d.ID] = attributed
		next.Devices = append(next.Devices, attributed)
	}
	s.last, next.Taken = last, time.Now()
	return next
}

// attribute attributes the processes of a list that was not attributed before.
func (s *sampler) attribute(d guard.Device) Device {
	if last, known := s.last[d.ID]; known && last.Listed.Equal(d.Listed) {
		d.Processes, d.Everyone = nil, last.Everyone
		return Device{d, last.Processes}
	}
	attributed := Device{Device: d}
	attributed.Device.Processes = nil
	for _, p := range s.sightings.Identify(d, s.node.Name) {
		attributed.Everyone = append(attributed.Everyone, p.Process)
		attributed.Processes = append(attributed.Processes, Process{p.Process, p.At, p.Was, p.Has})
	}
	return attributed
}

// of returns the part of a sample that is a pod's. A device that fails is the
// fault of pods that were seen on it, and of pods that were seen on fewer devices
// than they have.
func (s Sample) of(p Pod, seen map[string]bool) guard.Sample {
	part := guard.Sample{Taken: s.Taken, Fault: s.Fault, ByAgent: true}
	for _, d := range s.Devices {
		own := d.Device
		own.Everyone = slices.Clone(d.Everyone)
		for i, process := range d.Processes {
			if process.Member.PodUID != p.UID {
				if reason := process.orphaned(p); reason != "" {
					own.Orphans = append(own.Orphans, guard.Orphan{Process: process.Process, Reason: reason})
				}
				continue
			}
			named := process.Process
			named.Container = p.ContainerName(process.Member.ContainerID)
			named.MPS = named.MPS || p.UsesMPS()
			own.Processes = append(own.Processes, named)
			if i < len(own.Everyone) { // so that memory freed by its own processes is not taken for others'
				own.Everyone[i].Container = named.Container
			}
			seen[d.ID] = true
		}
		if !seen[d.ID] { // who is of no known container is reported to the users of the device
			own.Orphans = slices.DeleteFunc(own.Orphans, func(o guard.Orphan) bool { return o.Unread })
		}
		// A device that fails concerns the pod only while it may be one of the pod's.
		if own.Fault == "" || seen[d.ID] || len(seen) < p.Given() {
			part.Devices = append(part.Devices, own)
		}
	}
	return part
}

// orphaned returns why the memory of a process that may be the pod's is charged to
// nobody, or an empty text.
func (process Process) orphaned(p Pod) string {
	switch {
	case process.Member != cgroup.Member{} || p.UID == "":
		return ""
	case process.Was.PodUID == p.UID:
		return fmt.Sprintf("the process of %s that had pid %d has exited, and another may hold it",
			p.ContainerName(process.Was.ContainerID), process.PID)
	case process.Has.PodUID == p.UID:
		return fmt.Sprintf("it was in use before the process of %s began that has pid %d now",
			p.ContainerName(process.Has.ContainerID), process.PID)
	case process.Unread:
		return fmt.Sprintf("the container of pid %d is not known, since too many of its threads have exited", process.PID)
	}
	return ""
}
