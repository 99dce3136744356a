package guard

import (
	"context"
	"testing"
	"time"
)

// driver lists what it is given, and charges cgroups where it can.
type driver struct {
	lists   [][]Process
	charges map[string]int64 // by cgroup
}

func (d *driver) Read(context.Context, time.Duration) ([]Device, error) {
	listed := d.lists[0]
	d.lists = d.lists[1:]
	return []Device{{ID: "gpu0", Listed: epoch.Add(time.Duration(10-len(d.lists)) * time.Second), AsOf: 100, Processes: listed}}, nil
}

func (d *driver) Charge(_ context.Context, _, cgroup string) (used, limit int64, ok bool) {
	used, ok = d.charges[cgroup]
	return used, 2 * used, ok
}

// names are the processes of a pod by PID.
type names map[int]Process

func (n names) Name(p Process) Process {
	named := n[p.PID]
	p.Container, p.Start = named.Container, named.Start
	return p
}

func (n names) Cgroup(pid int) string { return n[pid].Command }

func TestPodSamplerCharges(t *testing.T) {
	t.Parallel()
	n := names{1: {Start: 1, Container: "trainer", Command: "/a"}, 2: {Start: 1, Container: "trainer", Command: "/a"},
		3: {Start: 1, Container: "scorer", Command: "/b"}, 4: {Start: 1, Container: "loader"}}
	list := []Process{{PID: 1, UsedBytes: gib, Known: true}, {PID: 2, UsedBytes: gib, Known: true},
		{PID: 3, UsedBytes: gib, Known: true}, {PID: 4, UsedBytes: gib, Known: true}}
	s := PodSampler{Reader: &driver{lists: [][]Process{list}, charges: map[string]int64{"/a": gib}}, Namer: n}
	got := s.Sample(t.Context(), 0).Devices[0].Charges
	equal(t, "charges, of each container that the driver charges", got, []Charge{{Container: "trainer", UsedBytes: gib, LimitBytes: 2 * gib}})
}

// A process that gets the PID of one that is still listed is not blamed.
func TestPodSamplerPIDOfAnother(t *testing.T) {
	t.Parallel()
	n := names{7: {Start: 5, Container: "scorer"}}
	list := []Process{{PID: 7, UsedBytes: 12 * gib, Known: true}}
	s := PodSampler{Reader: &driver{lists: [][]Process{list, list}}, Namer: n}
	first := s.Sample(t.Context(), 0).Devices[0]
	equal(t, "who holds it", first.Processes[0].Container, "scorer")
	n[7] = Process{Start: 50, Container: "trainer"}
	second := s.Sample(t.Context(), 0).Devices[0]
	equal(t, "who holds it by then", second.Processes[0].Container, "")
	equal(t, "the fault", listFault(State{}, second), "the device lists pid 7 since before the process began that has this number")
}
