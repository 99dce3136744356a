package main

import (
	"slices"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/cgroup"
	"github.com/gpuslice/gpuslice/guard/gpu"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
)

// use is one reading of a node with gpu0 and gpu1.
type use struct {
	processes  []node.Process // on gpu0
	seen       bool           // the pod has used gpu0 before
	fault      string         // of gpu0
	activities []gpu.Activity
}

func activity(device string, complete bool, ran ...int) gpu.Activity {
	a := gpu.Activity{Device: device, Complete: complete, Ran: map[int]bool{}}
	for _, pid := range ran {
		a.Ran[pid] = true
	}
	return a
}

func processOf(pid int, uid, container string) node.Process {
	return node.Process{Process: guard.Process{PID: pid, UsedBytes: 1 << 30, Known: true}, Member: cgroup.Member{PodUID: uid, ContainerID: container}}
}

// recorderOf returns a recorder of one pod whose policy reports it after a minute.
func recorderOf(change func(*limits.Limits)) *recorder {
	p := node.Pod{UID: "u-1", Namespace: "team-a", Name: "train", Containers: map[string]string{"c-1": "trainer", "c-2": "beside"}}
	p.Limits.IdleReport = time.Minute
	p.Limits.Containers = []limits.Container{{Name: "trainer", SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1}}
	change(&p.Limits)
	r := newRecorder(func(uid string) (node.Pod, bool) { return p, uid == p.UID })
	r.add(p)
	return r
}

// idleAfter returns the slices that are reported while a reading repeats.
func (r *recorder) idleAfter(d time.Duration, u use) (reported []string) {
	r.sampled(node.Sample{Devices: []node.Device{
		{Device: guard.Device{ID: "gpu0", Fault: u.fault}, Processes: u.processes}, {Device: guard.Device{ID: "gpu1"}}}})
	if u.seen {
		r.pods["u-1"].usages = []guard.Usage{{Container: "trainer", Device: "gpu0"}}
	}
	began := r.pods["u-1"].readUse
	for at := time.Duration(0); at <= d; at += usePeriod {
		for _, s := range r.recordUse(began.Add(at), u.activities) {
			reported = append(reported, s.message())
		}
	}
	return reported
}

func TestIdle(t *testing.T) {
	const message = "nothing of trainer ran on a GPU for 60s, and its slice holds 8Gi: delete the pod if nobody needs it"
	both := func(a ...gpu.Activity) []gpu.Activity { return append(a, activity("gpu1", true)) }
	tenant, neighbor := processOf(7, "u-1", "c-1"), processOf(9, "u-2", "c-9")
	client := tenant
	client.MPS = true
	for name, c := range map[string]struct {
		use  use
		idle bool
	}{
		"a process of which nothing ran":                  {use{processes: []node.Process{tenant}, seen: true, activities: both(activity("gpu0", true))}, true},
		"beside a neighbor that runs":                     {use{processes: []node.Process{tenant, neighbor}, seen: true, activities: both(activity("gpu0", true, 9))}, true},
		"no process, of a driver that reports nothing":    {use{}, true},
		"one that runs":                                   {use{processes: []node.Process{tenant}, seen: true, activities: both(activity("gpu0", true, 7))}, false},
		"one that runs in a container without a slice":    {use{processes: []node.Process{processOf(8, "u-1", "c-2")}, seen: true, activities: both(activity("gpu0", true, 8))}, false},
		"somebody unknown runs":                           {use{processes: []node.Process{tenant}, seen: true, activities: both(activity("gpu0", false, 99))}, false},
		"somebody unknown runs, and the pod was never on": {use{activities: both(activity("gpu0", false, 99))}, false},
		"the driver does not report what runs":            {use{processes: []node.Process{tenant}, seen: true}, false},
		"nor did where the pod was":                       {use{seen: true}, false},
		"a client of an MPS daemon":                       {use{processes: []node.Process{client}, seen: true, activities: both(activity("gpu0", true))}, false},
		"who ran is not listed any more":                  {use{processes: []node.Process{tenant}, seen: true, activities: both(activity("gpu0", true, 8))}, false},
		"a device that cannot be read":                    {use{fault: "it is lost", seen: true, activities: both()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{message}
			if !c.idle {
				want = nil
			}
			if got := recorderOf(func(*limits.Limits) {}).idleAfter(5*time.Minute, c.use); !slices.Equal(got, want) {
				t.Errorf("reported %q, want %q", got, want)
			}
		})
	}
	t.Run("not without a policy", func(t *testing.T) {
		if got := recorderOf(func(l *limits.Limits) { l.IdleReport = 0 }).idleAfter(5*time.Minute, use{}); got != nil {
			t.Errorf("reported %q", got)
		}
	})
	t.Run("anew after the agent did not read for a while", func(t *testing.T) {
		r := recorderOf(func(*limits.Limits) {})
		quiet := use{processes: []node.Process{tenant}, seen: true, activities: both(activity("gpu0", true))}
		before := r.idleAfter(50*time.Second, quiet)
		r.pods["u-1"].readUse = r.pods["u-1"].readUse.Add(-longestUseGap - usePeriod)
		if got := append(before, r.idleAfter(50*time.Second, quiet)...); got != nil {
			t.Errorf("reported %q", got)
		}
	})
	t.Run("anew after something ran", func(t *testing.T) {
		r := recorderOf(func(*limits.Limits) {})
		quiet := use{processes: []node.Process{tenant}, seen: true, activities: both(activity("gpu0", true))}
		busy := quiet
		busy.activities = both(activity("gpu0", true, 7))
		for _, step := range []struct {
			use  use
			d    time.Duration
			want int
		}{{quiet, 50 * time.Second, 0}, {busy, usePeriod, 0}, {quiet, 50 * time.Second, 0}, {quiet, time.Minute, 1}, {busy, usePeriod, 0}, {quiet, 2 * time.Minute, 1}} {
			if got := r.idleAfter(step.d, step.use); len(got) != step.want {
				t.Errorf("%+v: reported %q", step, got)
			}
		}
	})
}
