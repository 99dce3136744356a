package guard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// overLimit is a state in which trainer was over its limit for a minute, and the
// reading that shows it.
func overLimit(ps ...Process) (State, []reading) {
	u := Usage{Container: "trainer", Device: "gpu0", UsedBytes: 9 * gib, LimitBytes: 8 * gib, SliceBytes: 8 * gib,
		OverSince: epoch.Add(-time.Minute), OverFor: time.Minute, Processes: ps}
	return State{SampledAt: epoch, Usages: []Usage{u}, Devices: []DeviceStatus{{Device: "gpu0", ListedAt: epoch}}}, []reading{trusted(ps...)}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	protected := python(1, 9)
	for name, tc := range map[string]struct {
		process Process
		change  func(*State, *limits.Limits)
		order   OrderKind
		events  []EventKind
	}{
		"confirms first": {python(214, 9), nil, Confirm, nil},
		"terminates what it confirmed": {python(214, 9), func(s *State, _ *limits.Limits) { s.Usages[0].Confirming = true },
			TerminateProcess, nil},
		"nothing within the limit": {python(214, 9), func(s *State, _ *limits.Limits) { s.Usages[0].OverSince = time.Time{} }, "", nil},
		"reports what it may not terminate": {protected, func(s *State, _ *limits.Limits) { s.Usages[0].Confirming = true }, "",
			[]EventKind{NotTerminated}},
		"and reports it once": {protected, func(s *State, _ *limits.Limits) {
			s.Usages[0].Confirming, s.Usages[0].Reported = true, "it has no process that the guard may terminate"
		}, "", nil},
		"the container after too many": {python(214, 9), func(s *State, l *limits.Limits) {
			s.Usages[0].Confirming, s.Terminations, l.MaxTerminations = true, []Termination{{"trainer", epoch}}, 1
		}, TerminateContainer, nil},
		"nothing after too many, where the policy observes": {python(214, 9), func(s *State, l *limits.Limits) {
			s.Usages[0].Confirming, s.Terminations, l.MaxTerminations = true, []Termination{{"trainer", epoch}}, 1
			l.Escalation = limits.EscalationObserve
		}, "", []EventKind{NotTerminated}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := trainer()
			s, readings := overLimit(tc.process)
			if tc.change != nil {
				tc.change(&s, &l)
			}
			next, order, events := decide(s, readings, l)
			var kind OrderKind
			if order != nil {
				kind = order.Kind
			}
			equal(t, "order", kind, tc.order)
			equal(t, "events", kinds(events), tc.events)
			terminates := kind == TerminateProcess || kind == TerminateContainer
			equal(t, "a termination is in progress", next.InProgress != nil, terminates)
		})
	}
}

func TestNextOverLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*State, []reading, *limits.Limits)
		want   bool
	}{
		"over for the grace period":    {nil, true},
		"a termination is in progress": {func(s *State, _ []reading, _ *limits.Limits) { s.InProgress = &Order{} }, false},
		"the last one was just settled": {
			func(s *State, _ []reading, _ *limits.Limits) { s.Settling, s.OutcomeAt = true, epoch.Add(-time.Second) }, false,
		},
		"the last one was settled long ago": {
			func(s *State, _ []reading, _ *limits.Limits) { s.Settling, s.OutcomeAt = true, epoch.Add(-time.Minute) }, true,
		},
		"the last one terminated nothing": {func(s *State, _ []reading, _ *limits.Limits) { s.OutcomeAt = epoch.Add(-time.Second) }, true},
		"the list is older than the last": {func(s *State, _ []reading, _ *limits.Limits) { s.OutcomeAt = epoch }, false},
		"the list cannot be trusted":      {func(_ *State, r []reading, _ *limits.Limits) { r[0].trusted = false }, false},
		"another device was read":         {func(_ *State, r []reading, _ *limits.Limits) { r[0].ID = "gpu1" }, false},
		"within the grace period":         {func(_ *State, _ []reading, l *limits.Limits) { l.Grace = time.Hour }, false},
		"within the limit":                {func(s *State, _ []reading, _ *limits.Limits) { s.Usages[0].OverSince = time.Time{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := trainer()
			s, readings := overLimit(python(214, 9))
			if tc.change != nil {
				tc.change(&s, readings, &l)
			}
			u, found := nextOverLimit(s, readings, l)
			if found != tc.want || found && u.Container != "trainer" {
				t.Errorf("found %v: %+v", found, u)
			}
		})
	}
}

func TestProcessOrder(t *testing.T) {
	t.Parallel()
	blank, protected, client := python(300, 0), python(301, 70), python(302, 6)
	blank.Known, protected.Protected, client.MPS = false, true, true
	for name, tc := range map[string]struct {
		processes  []Process
		pid        int // 0: none
		mps, alone bool
	}{
		"the only process":               {[]Process{python(214, 9)}, 214, false, true},
		"the largest":                    {[]Process{python(214, 3), python(215, 6)}, 215, false, false},
		"not one that is protected":      {[]Process{protected, python(214, 3)}, 214, false, false},
		"not one without a figure":       {[]Process{blank, python(214, 3)}, 214, false, false},
		"a client of MPS, and marked so": {[]Process{client}, 302, true, true},
		"nothing that it may terminate":  {[]Process{protected, blank, python(1, 9)}, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, reason := processOrder(Order{}, Usage{Container: "trainer", Processes: tc.processes}, []reading{trusted(tc.processes...)})
			if o.Process.PID != tc.pid || (reason == "") != (tc.pid != 0) || o.MPS != tc.mps || o.Alone != tc.alone {
				t.Errorf("got %+v, %q", o, reason)
			}
		})
	}
}

func TestContainerOrder(t *testing.T) {
	t.Parallel()
	client, other := python(215, 6), python(300, 1)
	client.MPS, other.Container = true, "scorer"
	mine := []Process{python(214, 3), client}
	equal(t, "alone", containerOrder(Order{}, Usage{Container: "trainer", Processes: mine}, []reading{trusted(mine...)}),
		Order{Kind: TerminateContainer, MPS: true, Alone: true})
	equal(t, "beside another", containerOrder(Order{}, Usage{Container: "trainer", Processes: mine[:1]}, []reading{trusted(mine[0], other)}),
		Order{Kind: TerminateContainer})
}

func TestAlone(t *testing.T) {
	t.Parallel()
	named := func(p Process) bool { return p.PID == 214 }
	for name, tc := range map[string]struct {
		readings []reading
		want     bool
	}{
		"nothing else":                   {[]reading{trusted(python(214, 1)), trusted()}, true},
		"another process":                {[]reading{trusted(python(214, 1), python(215, 1))}, false},
		"another process, other device":  {[]reading{trusted(python(214, 1)), trusted(python(215, 1))}, false},
		"a device that cannot be relied": {[]reading{trusted(python(214, 1)), untrusted()}, false},
	} {
		equal(t, name, alone(tc.readings, named), tc.want)
	}
}

func TestWithheld(t *testing.T) {
	t.Parallel()
	reused := python(214, 9)
	reused.Start++
	blank := python(214, 9)
	blank.Known = false
	order := Order{Kind: TerminateProcess, Container: "trainer", Device: "gpu0", Process: python(214, 9)}
	container := Order{Kind: TerminateContainer, Container: "trainer", Device: "gpu0"}
	unknown := order
	unknown.Container = "debug"
	const (
		within   = "it was no longer over its limit when it was sampled again"
		unlisted = "the device no longer listed it when it was sampled again"
		unread   = "its device could not be read when it was sampled again"
		doubted  = "its device could not be relied on when it was sampled again"
	)
	for name, tc := range map[string]struct {
		order  Order
		device Device
		fault  string
		want   string
	}{
		"the very process, still over": {order, Device{ID: "gpu0", Processes: []Process{python(214, 9)}}, "", ""},
		"within the limit again":       {order, Device{ID: "gpu0", Processes: []Process{python(214, 7)}}, "", within},
		"exited, the rest still over":  {order, Device{ID: "gpu0", Processes: []Process{python(215, 9)}}, "", unlisted},
		"a reused PID":                 {order, Device{ID: "gpu0", Processes: []Process{reused}}, "", unlisted},
		"no figure for it any more":    {order, Device{ID: "gpu0", Processes: []Process{blank, python(215, 9)}}, "", unlisted},
		"a container, still over":      {container, Device{ID: "gpu0", Processes: []Process{python(215, 9)}}, "", ""},
		"a container, within":          {container, Device{ID: "gpu0", Processes: []Process{python(215, 7)}}, "", within},
		"an old list":                  {order, Device{ID: "gpu0", Listed: epoch, Processes: []Process{python(214, 9)}}, "", unread},
		"another device":               {order, Device{ID: "gpu1", Processes: []Process{python(214, 9)}}, "", unread},
		"a fault of the device": {order, Device{ID: "gpu0", Fault: "lost", Processes: []Process{python(214, 9)}},
			"", doubted + ": lost"},
		"a fault of the sampler": {order, Device{ID: "gpu0", Processes: []Process{python(214, 9)}}, "hung", unread + ": hung"},
		"an unknown process on the device": {order, Device{ID: "gpu0", Processes: []Process{python(214, 9), {PID: 7}}},
			"", doubted + ": the device lists pid 7, which is no process of this pod"},
		"a container without a slice": {unknown, Device{ID: "gpu0", Processes: []Process{python(214, 9)}}, "", unlisted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.device.Listed.IsZero() {
				tc.device.Listed = epoch.Add(time.Second)
			}
			in := Sample{Taken: epoch.Add(time.Second), Fault: tc.fault, Devices: []Device{tc.device}}
			equal(t, "withheld", withheld(State{SampledAt: epoch}, in, tc.order, trainer()), tc.want)
		})
	}
}

func TestByUrgency(t *testing.T) {
	t.Parallel()
	want := []Usage{
		{Container: "confirmed", Confirming: true, UsedBytes: 9},
		{Container: "largest excess", UsedBytes: 9, LimitBytes: 2},
		{Container: "less", UsedBytes: 99, LimitBytes: 95},
		{Container: "less as well", UsedBytes: 9, LimitBytes: 5},
		{Container: "reported", Reported: "so", Confirming: true, UsedBytes: 100},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, byUrgency)
	equal(t, "order", got, want)
}

func TestByCost(t *testing.T) {
	t.Parallel()
	want := []Process{{PID: 1, UsedBytes: 9}, {PID: 2, UsedBytes: 5, Start: 8},
		{PID: 4, UsedBytes: 5, Start: 7}, {PID: 3, UsedBytes: 5, Start: 7}}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, byCost)
	equal(t, "order", got, want)
}

// TestOrderDuration names how long a container was over its limit, from the shortest duration that rounds to a tenth of a second.
func TestOrderDuration(t *testing.T) {
	t.Parallel()
	for over, want := range map[time.Duration]bool{0: false, 49 * time.Millisecond: false, 50 * time.Millisecond: true} {
		text := Order{Process: python(214, 9), OverFor: over}.TenantMessage()
		equal(t, over.String(), strings.Contains(text, " for "), want)
	}
}
