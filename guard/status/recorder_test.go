package status

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
)

// TestUsed: what a pod uses goes into the Lease where all of it was read lately, and is never taken for nothing.
func TestUsed(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name     string
		measured time.Time
		taken    time.Time
		last     node.Sample
		want     map[string]int64
	}{
		{"read", now, now, node.Sample{Taken: now}, map[string]int64{"u-1": 2}},
		{"an old measurement", now.Add(-time.Minute), now, node.Sample{Taken: now}, map[string]int64{}},
		{"an old sample", now, now.Add(-time.Minute), node.Sample{Taken: now}, map[string]int64{}},
		{"nothing could be read", now, now, node.Sample{Taken: now, Fault: "no driver"}, map[string]int64{}},
		{"another device could not be read", now, now, node.Sample{Taken: now, Devices: []node.Device{{Device: guard.Device{Fault: "lost"}}}},
			map[string]int64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := New(func(string) (node.Pod, bool) { return node.Pod{}, true })
			r.Add(node.Pod{UID: "u-2"}) // never sampled
			record := r.Add(node.Pod{UID: "u-1"})
			r.Observe(record, c.taken,
				guard.State{Usages: []guard.Usage{{Container: "a", Device: "gpu0", MeasuredAt: c.measured, UsedBytes: 1 << 20},
					{Container: "b", Device: "gpu0", MeasuredAt: now, UsedBytes: 1}}})
			r.Sample(c.last)
			if diff := cmp.Diff(c.want, r.Report(now).Used); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestNotEnforced: a slice is reported that the guard cannot enforce, in a text that fits into a Lease with those of others.
func TestNotEnforced(t *testing.T) {
	r := New(func(string) (node.Pod, bool) { return node.Pod{}, true })
	r.Add(node.Pod{UID: "u-2"})
	lost := guard.State{
		Devices: []guard.DeviceStatus{{Device: "gpu0", Unreliable: true, Reason: "it is lost " + strings.Repeat("°", longestReason)}},
	}
	r.Observe(r.Add(node.Pod{UID: "u-1"}), time.Now(), lost)
	got := r.Report(time.Now()).NotEnforced
	if text := got["u-1"]; len(got) != 1 || len(text) > longestReason || !utf8.ValidString(text) || !strings.HasPrefix(text, "it is lost") {
		t.Errorf("reported %q", got)
	}
	r.Remove("u-1")
	if got := r.Report(time.Now()).NotEnforced; len(got) > 0 {
		t.Errorf("a pod that is gone: %q", got)
	}
}

// TestUse: of the pods that are promised a slice, an idle one is reported and due; a pod that is gone is not.
func TestUse(t *testing.T) {
	p := node.Pod{UID: "u-1",
		Limits: limits.Limits{IdleReport: time.Minute, IdleTerminate: 2 * time.Minute, Containers: []limits.Container{{Name: "a", GPUs: 1}}}}
	r := New(func(uid string) (node.Pod, bool) { return p, uid == p.UID })
	r.Add(p)
	r.Add(node.Pod{UID: "u-2", Limits: p.Limits}) // not promised any more
	began := time.Now()
	r.Sample(node.Sample{Taken: began, Devices: []node.Device{{Device: guard.Device{ID: "gpu0"}}}})
	notices := 0
	for at := time.Duration(0); at <= 3*time.Minute; at += 10 * time.Second {
		for _, n := range r.Use(began.Add(at), []guard.Activity{{Device: "gpu0", Complete: true}}) {
			if notices++; n.Pod.UID != "u-1" {
				t.Errorf("a notice about %s", n.Pod.UID)
			}
		}
	}
	if got := r.Due("u-1"); notices != 1 || len(got) != 1 || got[0].Container != "a" {
		t.Errorf("%d notices, due %+v", notices, got)
	}
	if got := append(r.Due("u-2"), r.Due("u-3")...); len(got) > 0 {
		t.Errorf("due of others: %+v", got)
	}
}

// TestSnapshot: what is read of a snapshot does not change while the recorder goes on.
func TestSnapshot(t *testing.T) {
	r := New(func(string) (node.Pod, bool) { return node.Pod{}, true })
	p := r.Add(node.Pod{UID: "u-1"})
	before := r.Snapshot()
	r.Count(p, guard.Event{Kind: guard.NearLimit, Container: "a"})
	r.Count(p, guard.Event{Kind: guard.TerminationResult, Container: "a", Outcome: &guard.Outcome{Result: guard.Terminated}})
	after := r.Snapshot()
	if n := before.Pods[0].Warnings["a"]; n != 0 {
		t.Errorf("the first snapshot has %d warnings", n)
	}
	if got := after.Pods[0]; got.Warnings["a"] != 1 || got.Terminations[[2]string{"a", string(guard.Terminated)}] != 1 {
		t.Errorf("the second has %+v", got)
	}
}
