package guard

import (
	"testing"
	"time"
)

func TestEvaluateReadings(t *testing.T) {
	t.Parallel()
	s := State{Devices: []DeviceStatus{{}, {Device: "gpu0", Failures: 2}, {Device: "gpu1", Failures: 3, Successes: 2, Unreliable: true}}}
	in := Sample{Taken: epoch, Devices: []Device{{ID: "gpu0", Fault: "lost"}, {ID: "gpu1", Listed: epoch}}}
	readings, devices, events := evaluateReadings(s, in)
	equal(t, "devices", devices, []DeviceStatus{{Successes: 1}, {Device: "gpu0", Failures: 3, Unreliable: true, Reason: "lost"},
		{Device: "gpu1", Successes: 3, ListedAt: epoch}})
	equal(t, "events", events, []Event{{Kind: NotEnforcing, Device: "gpu0", Reason: "lost"}, {Kind: Enforcing, Device: "gpu1"}})
	equal(t, "trusted", []bool{readings[0].trusted, readings[1].trusted}, []bool{false, true})

	in.Fault = "hung"
	readings, devices, _ = evaluateReadings(s, in)
	equal(t, "the sampler", devices[0], DeviceStatus{Failures: 1, Reason: "hung"})
	equal(t, "trusted while the sampler fails", readings[1].trusted, false)
}

func TestEvaluateReading(t *testing.T) {
	t.Parallel()
	before := DeviceStatus{Device: "gpu0", ListedAt: epoch}
	later := epoch.Add(time.Second)
	for name, tc := range map[string]struct {
		device            Device
		after             DeviceStatus
		evidence, trusted bool
	}{
		"a new list":         {Device{ID: "gpu0", Listed: later}, DeviceStatus{Device: "gpu0", Successes: 1, ListedAt: later}, true, true},
		"the list of before": {Device{ID: "gpu0", Listed: epoch}, before, false, false},
		"a fault": {Device{ID: "gpu0", Fault: "lost"},
			DeviceStatus{Device: "gpu0", Failures: 1, Reason: "lost", ListedAt: epoch}, true, false},
		"a full device": {Device{ID: "gpu0", Listed: epoch, UsedBytes: 99, TotalBytes: 100},
			DeviceStatus{Device: "gpu0", ListedAt: epoch, Full: true}, false, false},
		"an unknown process": {Device{ID: "gpu0", Listed: later, Processes: []Process{{PID: 7}}},
			DeviceStatus{Device: "gpu0", Failures: 1, Reason: "the device lists pid 7, which is no process of this pod", ListedAt: later},
			true, false},
		"no total, not full":  {Device{ID: "gpu0", Listed: epoch, UsedBytes: 99}, before, false, false},
		"a device not so far": {Device{ID: "gpu9", Listed: later}, DeviceStatus{Device: "gpu9", Successes: 1, ListedAt: later}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := evaluateReading(State{Devices: []DeviceStatus{before}}, tc.device)
			equal(t, "status", got.after, tc.after)
			equal(t, "evidence, trusted", []bool{got.evidence, got.trusted}, []bool{tc.evidence, tc.trusted})
		})
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		readings string // f: failing, g: good
		want     bool   // unreliable
	}{
		"two failures":                     {"ff", false},
		"three failures":                   {"fff", true},
		"three failures, two good between": {"ffggf", true},
		"three good ones forget failures":  {"ffgggf", false},
		"two good ones do not restore":     {"fffgg", true},
		"three good ones restore":          {"fffggg", false},
		"every other one fails":            {"gfgfgf", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d DeviceStatus
			for _, r := range tc.readings {
				d = d.count(map[rune]string{'f': "lost"}[r])
			}
			equal(t, tc.readings, d.Unreliable, tc.want)
		})
	}
}

func TestListFault(t *testing.T) {
	t.Parallel()
	blank := python(214, 0)
	blank.Known = false
	s := State{PendingRelease: []PendingRelease{{Device: "gpu0", Process: Process{PID: 7}}}}
	for name, tc := range map[string]struct {
		device Device
		want   string
	}{
		"nothing listed":        {Device{ID: "gpu0"}, ""},
		"a fault of the device": {Device{ID: "gpu0", Fault: "lost"}, "lost"},
		"a known process":       {Device{ID: "gpu0", Processes: []Process{python(214, 1)}}, ""},
		"one figure of two":     {Device{ID: "gpu0", Processes: []Process{python(215, 1), blank}}, ""},
		"no figure": {Device{ID: "gpu0", Processes: []Process{blank}},
			"the device lists 1 process of this pod and gives no memory for any"},
		"one unknown process of two": {Device{ID: "gpu0", Processes: []Process{python(214, 1), {PID: 9, Known: true}}},
			"the device lists pid 9, which is no process of this pod"},
		"one that was terminated": {Device{ID: "gpu0", Processes: []Process{{PID: 7, Known: true}}}, ""},
		"that one's PID on another device": {Device{ID: "gpu1", Processes: []Process{{PID: 7, Known: true}}},
			"the device lists pid 7, which is no process of this pod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal(t, "fault", listFault(s, tc.device), tc.want)
		})
	}
}

func TestEvaluateUnmanaged(t *testing.T) {
	t.Parallel()
	in := func(container string) Process { return Process{PID: 300, Container: container, UsedBytes: gib} }
	for name, tc := range map[string]struct {
		reported []string
		reading  reading
		want     []string
		events   int
	}{
		"a container without a slice": {nil, trusted(in("debug")), []string{"debug"}, 1},
		"two processes of it":         {nil, trusted(in("debug"), in("debug")), []string{"debug"}, 1},
		"reported before":             {[]string{"debug"}, trusted(in("debug")), []string{"debug"}, 0},
		"a container with a slice":    {nil, trusted(in("trainer")), nil, 0},
		"beside one with a slice":     {nil, trusted(in("trainer"), in("debug")), []string{"debug"}, 1},
		"beside one reported before":  {[]string{"other"}, trusted(in("other"), in("debug")), []string{"other", "debug"}, 1},
		"beside one without a name":   {nil, trusted(in(UnnamedContainer), in("debug")), []string{"debug"}, 1},
		"the guard itself":            {nil, trusted(in("gpuslice-guard")), nil, 0},
		"terminated, not yet gone":    {nil, trusted(in("")), nil, 0},
		"an untrusted list":           {nil, untrusted(in("debug")), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reported, events := evaluateUnmanaged(State{Unmanaged: tc.reported, UnnamedSince: epoch}, epoch, []reading{tc.reading}, trainer())
			equal(t, "reported", reported, tc.want)
			equal(t, "events", len(events), tc.events)
		})
	}
}

// TestEvaluateUnnamed: the name of a container that has just begun may come later.
func TestEvaluateUnnamed(t *testing.T) {
	t.Parallel()
	unnamed, named := trusted(Process{PID: 300, Container: UnnamedContainer, UsedBytes: gib}),
		trusted(Process{PID: 300, Container: "trainer", UsedBytes: gib})
	for name, tc := range map[string]struct {
		readings []reading // 6 s apart
		events   int
	}{
		"named soon":         {[]reading{unnamed, unnamed, named}, 0},
		"unnamed for longer": {[]reading{unnamed, unnamed, unnamed, unnamed}, 1},
		"unnamed in turns":   {[]reading{unnamed, unnamed, named, unnamed, unnamed}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s State
			reported := 0
			for i, r := range tc.readings {
				now := epoch.Add(time.Duration(i) * 6 * time.Second)
				s.UnnamedSince = unnamedSince(s.UnnamedSince, now, []reading{r})
				var events []Event
				s.Unmanaged, events = evaluateUnmanaged(s, now, []reading{r}, trainer())
				reported += len(events)
			}
			equal(t, "events", reported, tc.events)
		})
	}
}
