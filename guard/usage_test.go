package guard

import (
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

func burstLimits() limits.Limits {
	l := trainer()
	l.Act = limits.ActPressure
	l.Containers[0].LimitBytes = 12 * gib
	return l
}

func TestEvaluateUsage(t *testing.T) {
	t.Parallel()
	over := Usage{Container: "trainer", Device: "gpu0", UsedBytes: 9 * gib, OverSince: epoch.Add(-time.Second), Confirming: true}
	for name, tc := range map[string]struct {
		before  []Usage
		in      Sample
		reading reading
		over    []bool // one for each usage
	}{
		"a container that uses nothing has no usage": {nil, Sample{}, trusted(), nil},
		"one that begins to use the device":          {nil, Sample{}, trusted(python(214, 9)), []bool{true}},
		"one on an untrusted list":                   {nil, Sample{}, untrusted(python(214, 9)), []bool{false}},
		"one that was over and stays": {[]Usage{over},
			Sample{Devices: []Device{{ID: "gpu0"}}}, trusted(python(214, 9)), []bool{true}},
		"one whose list is old news": {[]Usage{over}, Sample{Devices: []Device{{ID: "gpu0"}}},
			reading{Device: Device{ID: "gpu0"}}, []bool{true}},
		"one whose device was not read": {[]Usage{over}, Sample{}, reading{}, []bool{false}},
		"one while the sampler fails": {[]Usage{over},
			Sample{Fault: "hung", Devices: []Device{{ID: "gpu0"}}}, untrusted(), []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			usages, _ := evaluateUsage(State{Usages: tc.before}, tc.in, []reading{tc.reading}, trainer())
			var got []bool
			for _, u := range usages {
				got = append(got, !u.OverSince.IsZero())
			}
			equal(t, "over the limit", got, tc.over)
		})
	}
}

func TestNextUsage(t *testing.T) {
	t.Parallel()
	l, before := trainer(), epoch.Add(-time.Second)
	over := Usage{Container: "trainer", Device: "gpu0", UsedBytes: 9 * gib, OverSince: before, Confirming: true, Reported: "so"}
	late := trusted(python(214, 9))
	late.before.ListedAt = epoch.Add(-MaxSampleGap(l) - 1)
	for name, tc := range map[string]struct {
		usage      Usage
		reading    reading
		since      time.Time
		confirming bool
	}{
		"comes over its limit":       {Usage{Container: "trainer"}, trusted(python(214, 9)), epoch, false},
		"stays over":                 {over, trusted(python(214, 9)), before, true},
		"is exactly at its limit":    {over, trusted(python(214, 8)), time.Time{}, false},
		"cannot be read":             {over, untrusted(python(214, 9)), time.Time{}, false},
		"was not sampled for long":   {over, late, before, false},
		"has two processes together": {Usage{Container: "trainer"}, trusted(python(214, 5), python(215, 4)), epoch, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := nextUsage(tc.usage, l.Containers[0], tc.reading, l)
			equal(t, "over since", got.OverSince, tc.since)
			equal(t, "confirming", got.Confirming, tc.confirming)
		})
	}
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	before := Usage{Container: "trainer", Device: "gpu0", UsedBytes: 4 * gib, PeakBytes: 6 * gib, GrowthRate: 1}
	for name, tc := range map[string]struct {
		gibs int64
		peak int64
		rate float64
	}{
		"grows":   {8, 8, float64(2 * gib)},
		"shrinks": {3, 6, 0},
		"stays":   {4, 6, 0},
	} {
		reading := trusted(python(214, tc.gibs))
		got := before.measure(reading)
		want := Usage{Container: "trainer", Device: "gpu0", MeasuredAt: reading.taken,
			UsedBytes: tc.gibs * gib, PeakBytes: tc.peak * gib, GrowthRate: tc.rate,
			ListedBytes: tc.gibs * gib, Processes: []Process{python(214, tc.gibs)}}
		equal(t, name, got, want)
	}
}

func TestUsedBytes(t *testing.T) {
	t.Parallel()
	other, blank := python(300, 5), python(215, 7)
	other.Container, blank.Known = "scorer", false
	for name, tc := range map[string]struct {
		device Device
		want   int64
	}{
		"nothing":                  {Device{}, 0},
		"the sum of its processes": {Device{Processes: []Process{python(214, 3), python(215, 2), other}}, 5},
		"a blank counts nothing":   {Device{Processes: []Process{python(214, 3), blank}}, 3},
		"no more than is in use":   {Device{UsedBytes: 4 * gib, Processes: []Process{python(214, 3), python(215, 3)}}, 4},
		"no more than is charged": {Device{Processes: []Process{python(214, 3), python(215, 3)},
			Charges: []Charge{{Container: "trainer", UsedBytes: 4 * gib}}}, 4},
		"the charge of a cgroup that it chose": {Device{Processes: []Process{python(214, 3)},
			Charges: []Charge{{Container: "trainer", UsedBytes: gib}}}, 3},
		"the charge of another": {Device{Processes: []Process{python(214, 3)},
			Charges: []Charge{{Container: "scorer", UsedBytes: gib}}}, 3},
		"a charge above the figures": {Device{Processes: []Process{python(214, 3)},
			Charges: []Charge{{Container: "trainer", UsedBytes: 9 * gib}}}, 3},
	} {
		equal(t, name, usedBytes(tc.device, "trainer", 0), tc.want*gib)
	}
}

func TestEffectiveLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limits limits.Limits
		device Device
		want   int64
	}{
		"always the slice":                    {trainer(), Device{TotalBytes: 100, UsedBytes: 1}, 8},
		"a burst while there is room":         {burstLimits(), Device{TotalBytes: 100, UsedBytes: 94}, 12},
		"no burst when the device is full":    {burstLimits(), Device{TotalBytes: 100, UsedBytes: 95}, 8},
		"a burst where the total is unknown":  {burstLimits(), Device{UsedBytes: 95}, 12},
		"act always, and a limit above slice": {func() limits.Limits { l := burstLimits(); l.Act = limits.ActAlways; return l }(), Device{}, 8},
	} {
		equal(t, name, effectiveLimit(tc.limits, tc.limits.Containers[0], tc.device), tc.want*gib)
	}
}

func TestWarn(t *testing.T) {
	t.Parallel()
	l := trainer()
	u := Usage{Container: "trainer", Device: "gpu0", LimitBytes: 8 * gib}
	with := func(used int64, change func(*Usage)) Usage {
		u := u
		u.UsedBytes = used
		if change != nil {
			change(&u)
		}
		return u
	}
	high, low := 8*gib-1, 5*gib
	for name, tc := range map[string]struct {
		usage  Usage
		want   Usage
		events []EventKind
	}{
		"near the limit once": {with(high, nil), with(high, func(u *Usage) { u.NearLimit = 1 }), nil},
		"near the limit twice": {with(high, func(u *Usage) { u.NearLimit = 1 }), with(high, func(u *Usage) { u.NearLimit, u.Warned = 2, true }),
			[]EventKind{NearLimit}},
		"at the limit once":      {with(8*gib, nil), with(8*gib, func(u *Usage) { u.NearLimit = 1 }), nil},
		"over the limit at once": {with(9*gib, nil), with(9*gib, func(u *Usage) { u.NearLimit, u.Warned = 1, true }), []EventKind{NearLimit}},
		"warned before": {with(9*gib, func(u *Usage) { u.Warned = true }),
			with(9*gib, func(u *Usage) { u.NearLimit, u.Warned = 1, true }), nil},
		"below, never warned": {with(low, func(u *Usage) { u.NearLimit = 1 }), with(low, nil), nil},
		"a little below": {with(8*gib*94/100, func(u *Usage) { u.Warned, u.BelowSince = true, epoch }),
			with(8*gib*94/100, func(u *Usage) { u.Warned = true }), nil},
		"clearly below": {with(low, func(u *Usage) { u.Warned = true }), with(low, func(u *Usage) { u.Warned, u.BelowSince = true, epoch }), nil},
		"clearly below for long": {with(low, func(u *Usage) { u.Warned, u.BelowSince = true, epoch.Add(-belowPeriod) }), with(low, nil),
			[]EventKind{BelowLimit}},
		"nothing, of no slice": {Usage{Container: UnnamedContainer, NearLimit: 1}, Usage{Container: UnnamedContainer}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := l.Containers[0]
			if tc.usage.Container == UnnamedContainer {
				c = limits.Container{Name: UnnamedContainer}
			}
			got, events := warn(tc.usage, c, epoch, l)
			equal(t, "usage", got, tc.want)
			equal(t, "events", kinds(events), tc.events)
		})
	}
}

func TestReportLostProcess(t *testing.T) {
	t.Parallel()
	c := trainer().Containers[0]
	full := func(r reading) reading { r.before.Full = true; return r }
	before := Usage{Container: "trainer", Device: "gpu0", UsedBytes: 3 * gib, Processes: []Process{python(214, 3)}}
	over := before
	over.UsedBytes = 9 * gib
	terminating := State{InProgress: &Order{Container: "trainer"}}
	terminated := State{PendingRelease: []PendingRelease{{Device: "gpu0", Process: python(214, 3)}}}
	for name, tc := range map[string]struct {
		state   State
		usage   Usage
		reading reading
		want    []EventKind
	}{
		"lost on a full device":             {State{}, before, full(trusted()), []EventKind{OOMWithinSlice}},
		"still there":                       {State{}, before, full(trusted(python(214, 3))), nil},
		"lost while there is room":          {State{}, before, trusted(), nil},
		"lost over its slice":               {State{}, over, full(trusted()), nil},
		"lost from an untrusted list":       {State{}, before, full(untrusted()), nil},
		"lost during a termination of ours": {terminating, before, full(trusted()), nil},
		"terminated by the guard":           {terminated, before, full(trusted()), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal(t, "events", kinds(reportLostProcess(tc.state, tc.usage, c, tc.reading)), tc.want)
		})
	}
}
