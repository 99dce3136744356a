package guard

import (
	"testing"
	"time"
)

func TestEvaluateOrphans(t *testing.T) {
	t.Parallel()
	lists := func(after time.Duration, orphans ...Orphan) reading {
		r := trusted()
		r.Listed, r.Orphans = epoch.Add(after), orphans
		return r
	}
	orphan := Orphan{Process: python(214, 12), Reason: "nobody knows"}
	failed := lists(time.Minute)
	failed.trusted = false
	pending := State{PendingRelease: []PendingRelease{{Device: "gpu0", Process: python(214, 12)}}}
	for name, tc := range map[string]struct {
		before   State
		readings []reading
		events   int
		left     int
	}{
		"at first":    {State{}, []reading{lists(0, orphan)}, 0, 1},
		"for a while": {State{}, []reading{lists(0, orphan), lists(orphanPeriod, orphan)}, 1, 1},
		"for long": {State{},
			[]reading{lists(0, orphan), lists(orphanPeriod, orphan), lists(time.Minute, orphan)}, 1, 1},
		"with a break":               {State{}, []reading{lists(0, orphan), lists(1), lists(orphanPeriod, orphan)}, 0, 1},
		"while the device fails":     {State{}, []reading{lists(0, orphan), failed, lists(orphanPeriod, orphan)}, 1, 1},
		"until it is gone":           {State{}, []reading{lists(0, orphan), lists(1)}, 0, 0},
		"of one that was terminated": {pending, []reading{lists(0, orphan), lists(orphanPeriod, orphan)}, 0, 0},
		"of one that the device blanks": {State{},
			[]reading{lists(0, Orphan{Process: Process{PID: 1}}), lists(orphanPeriod, Orphan{Process: Process{PID: 1}})}, 0, 0},
		"beside one that the device blanks": {State{}, []reading{lists(0, Orphan{Process: Process{PID: 1}}, orphan)}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, reports := tc.before, 0
			for _, r := range tc.readings {
				var events []Event
				s.Orphaned, events = evaluateOrphans(s, []reading{r})
				reports += len(events)
			}
			equal(t, "events, and what is left", []int{reports, len(s.Orphaned)}, []int{tc.events, tc.left})
			equal(t, "it is said to be not held", s.NotHeld() != "", tc.events > 0)
		})
	}
}

// TestOrphansBesideAFailedDevice has one device fail: orphans of the next are known all the same.
func TestOrphansBesideAFailedDevice(t *testing.T) {
	t.Parallel()
	failed, other := trusted(), trusted()
	failed.trusted, other.ID = false, "gpu1"
	other.Orphans = []Orphan{{Process: python(214, 12)}}
	orphaned, _ := evaluateOrphans(State{}, []reading{failed, other})
	equal(t, "orphans", len(orphaned), 1)
}

func TestNotHeld(t *testing.T) {
	t.Parallel()
	const unmanaged = "python (pid 300, 1Gi) in debug uses 1Gi on gpu0 without a slice: it is held to what the pod's slices leave"
	debug := python(300, 1)
	debug.Container = "debug"
	uses := func(container string, bytes int64) State {
		return State{Unmanaged: []string{"debug", UnnamedContainer},
			Usages: []Usage{{Container: container, Device: "gpu0", UsedBytes: bytes, Processes: []Process{debug}}}}
	}
	for name, tc := range map[string]struct {
		state State
		want  string
	}{
		"nothing":                        {State{}, ""},
		"a container without a slice":    {uses("debug", gib), unmanaged},
		"one that uses nothing any more": {uses("debug", 0), ""},
		"one with a slice":               {uses("trainer", gib), ""},
		"one whose name is not known":    {uses(UnnamedContainer, gib), ""},
		"one over its slice that is left": {State{Usages: []Usage{{Container: "trainer",
			UsedBytes: 9 * gib, LimitBytes: 8 * gib, Reported: "so"}}},
			"trainer uses 9Gi of 8Gi and is not terminated: so"},
		"one that is within it if it shares": {State{Usages: []Usage{{Container: "trainer", UsedBytes: 7 * gib,
			DoubleCountedBytes: 7 * gib, LimitBytes: 8 * gib, Doubted: true}}},
			"trainer uses 14Gi of 8Gi and is not terminated: 7Gi of it may be listed twice"},
	} {
		equal(t, name, tc.state.NotHeld(), tc.want)
	}
}
