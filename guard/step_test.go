package guard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// python is a process of trainer with that many GiB.
func python(pid int, gibs int64) Process {
	return Process{PID: pid, Start: uint64(pid), Container: "trainer", Command: "python", UsedBytes: gibs * gib, Known: true}
}

// trusted is a reading of gpu0 that lists these processes two seconds after the
// last.
func trusted(ps ...Process) reading {
	d := Device{ID: "gpu0", Listed: epoch, TotalBytes: 80 * gib, UsedBytes: 20 * gib, Processes: ps}
	status := DeviceStatus{Device: "gpu0", ListedAt: epoch.Add(-2 * time.Second)}
	after := status
	after.ListedAt = epoch
	return reading{Device: d, taken: epoch, before: status, after: after, evidence: true, trusted: true}
}

func untrusted(ps ...Process) reading {
	r := trusted(ps...)
	r.trusted = false
	return r
}

// equal fails when two values differ; nil and empty are the same.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(reading{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func kinds(events []Event) (kinds []EventKind) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestApplyOutcome(t *testing.T) {
	t.Parallel()
	order := Order{Kind: TerminateProcess, Container: "trainer", Device: "gpu0", Process: python(214, 9)}
	whole := order
	whole.Kind = TerminateContainer
	counted, pending := []Termination{{"trainer", epoch}}, []PendingRelease{{"gpu0", python(214, 9), epoch.Add(releasePeriod)}}
	for name, tc := range map[string]struct {
		out      Outcome
		reported string // before
		want     State  // what of it changes
		events   int
	}{
		"terminated": {Outcome{Order: order, Result: Terminated},
			"", State{Settling: true, Terminations: counted, PendingRelease: pending}, 1},
		"a whole container": {Outcome{Order: whole, Result: Terminated}, "", State{Settling: true, Terminations: counted}, 1},
		"a dry run counts":  {Outcome{Order: order, Result: DryRun}, "", State{Settling: true, Terminations: counted}, 1},
		"a timeout counts": {Outcome{Order: order, Result: TimedOut, Reason: "it hangs"},
			"", State{Settling: true, Terminations: counted}, 1},
		"gone needs no pause":      {Outcome{Order: order, Result: Gone, Reason: "it has exited"}, "", State{}, 1},
		"denied is reported":       {Outcome{Order: order, Result: Denied, Reason: "not permitted"}, "", State{Settling: true}, 1},
		"denied is reported once":  {Outcome{Order: order, Result: Denied, Reason: "not permitted"}, "not permitted", State{Settling: true}, 0},
		"another reason is news":   {Outcome{Order: order, Result: Skipped, Reason: "no daemon"}, "not permitted", State{Settling: true}, 1},
		"skipped without a reason": {Outcome{Order: order, Result: Skipped}, "", State{Settling: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.out.At = epoch
			usage := Usage{Container: "trainer", Device: "gpu0", Confirming: true, Reported: tc.reported}
			got, events := applyOutcome(State{InProgress: &tc.out.Order, Usages: []Usage{usage}}, &tc.out)
			usage.Confirming = false
			if !tc.out.Result.counts() {
				usage.Reported = tc.out.Reason
			}
			tc.want.OutcomeAt, tc.want.Usages = epoch, []Usage{usage}
			equal(t, "state", got, tc.want)
			if len(events) != tc.events {
				t.Errorf("reported %+v, want %d events", events, tc.events)
			}
		})
	}
	idle := State{SampledAt: epoch}
	got, events := applyOutcome(idle, &Outcome{Order: order, Result: Terminated})
	equal(t, "without a termination in progress", got, idle)
	equal(t, "events", events, []Event(nil))
}

func TestExpireReleased(t *testing.T) {
	t.Parallel()
	pending := []PendingRelease{{"gpu0", python(214, 9), epoch.Add(time.Second)}}
	for name, tc := range map[string]struct {
		readings []reading
		now      time.Time
		kept     bool
		want     []EventKind
	}{
		"released":                           {[]reading{trusted()}, epoch, false, nil},
		"still listed, in time":              {[]reading{trusted(python(214, 9))}, epoch, true, nil},
		"still listed, too late":             {[]reading{trusted(python(214, 9))}, epoch.Add(time.Second), false, []EventKind{MemoryNotReleased}},
		"a device that cannot be relied on":  {[]reading{untrusted()}, epoch.Add(time.Hour), true, nil},
		"a device that the sample does lack": {nil, epoch.Add(time.Hour), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept, events := expireReleased(pending, tc.readings, tc.now)
			if (len(kept) == 1) != tc.kept {
				t.Errorf("kept %+v, want it kept: %v", kept, tc.kept)
			}
			equal(t, "events", kinds(events), tc.want)
		})
	}
}

func TestRecentTerminations(t *testing.T) {
	t.Parallel()
	all := []Termination{{"a", epoch}, {"b", epoch.Add(time.Second)}}
	equal(t, "recent", recentTerminations(all, epoch.Add(61*time.Second), time.Minute), all[1:])
	equal(t, "given", all[0], Termination{"a", epoch})
}
