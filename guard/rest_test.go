package guard

import (
	"testing"

	"github.com/gpuslice/gpuslice/guard/limits"
)

func TestBeyondGPUs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gpus   int
		usages []Usage
		bytes  map[string]int64 // GiB of each device that was read
		want   []string
	}{
		"one of one": {1, nil, map[string]int64{"gpu0": 7}, nil},
		"two of two": {2, nil, map[string]int64{"gpu0": 7, "gpu1": 1}, nil},
		"two of one": {1, nil, map[string]int64{"gpu0": 1, "gpu1": 7}, []string{"gpu0"}},
		"equals":     {1, nil, map[string]int64{"gpu0": 7, "gpu1": 7, "gpu2": 7}, []string{"gpu1", "gpu2"}},
		"one that it uses no longer": {1, []Usage{{Container: "trainer", Device: "gpu0", UsedBytes: gib}},
			map[string]int64{"gpu0": 0, "gpu1": 1}, nil},
		"one that was not read now": {1, []Usage{{Container: "trainer", Device: "gpu2", UsedBytes: 2 * gib}},
			map[string]int64{"gpu0": 1}, []string{"gpu0"}},
		"one that another uses": {1, []Usage{{Container: "scorer", Device: "gpu2", UsedBytes: 2 * gib}}, map[string]int64{"gpu0": 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var readings []reading
			for id, gibs := range tc.bytes {
				r := trusted()
				if r.ID = id; gibs > 0 {
					r.Processes = []Process{python(214, gibs)}
				}
				readings = append(readings, r)
			}
			holdings := held("trainer", tc.usages, readings)
			var got []string
			for _, id := range []string{"gpu0", "gpu1", "gpu2"} {
				if beyondGPUs(limits.Container{GPUs: tc.gpus}, id, holdings) {
					got = append(got, id)
				}
			}
			equal(t, "beyond", got, tc.want)
		})
	}
}

func TestWithheldBeyondItsGPUs(t *testing.T) {
	t.Parallel()
	l := trainer()
	in := func(second int64) Sample {
		s := Sample{Taken: epoch.Add(1), Devices: []Device{{ID: "gpu0", Listed: epoch.Add(1), Processes: []Process{python(214, 7)}},
			{ID: "gpu1", Listed: epoch.Add(1)}}}
		if second > 0 {
			s.Devices[1].Processes = []Process{python(215, second)}
		}
		return s
	}
	o := Order{Kind: TerminateProcess, Container: "trainer", Device: "gpu1", Process: python(215, 1), Beyond: true}
	s := State{SampledAt: epoch}
	if withheld(s, in(1), o, l) != "" {
		t.Error("it still uses both")
	}
	if withheld(s, in(0), o, l) == "" {
		t.Error("it uses one by now")
	}
	o.Process, o.Device = python(214, 7), "gpu0"
	if withheld(s, in(1), o, l) == "" {
		t.Error("the device that it uses most is its own")
	}
}

// What has no slice may use what the slices leave, together.
func TestRestShares(t *testing.T) {
	t.Parallel()
	l := trainer()
	l.Containers = append(l.Containers, limits.Container{Name: "scorer", SliceBytes: 4 * gib, LimitBytes: 6 * gib, GPUs: 1})
	in := func(container string, gibs int64) Process {
		p := python(300+int(gibs), gibs)
		p.Container = container
		return p
	}
	for name, tc := range map[string]struct {
		processes []Process
		usages    []Usage
		want      map[string][2]int64 // GiB of slice and limit
	}{
		"nobody":             {nil, nil, map[string][2]int64{UnnamedContainer: {12, 14}}},
		"beside a slice":     {[]Process{in("trainer", 5), in("debug", 1)}, nil, map[string][2]int64{UnnamedContainer: {6, 8}, "debug": {7, 9}}},
		"beside one over it": {[]Process{in("trainer", 9), in("debug", 1)}, nil, map[string][2]int64{UnnamedContainer: {3, 5}, "debug": {4, 6}}},
		"two of them": {[]Process{in("debug", 2), in("loader", 3), in(UnnamedContainer, 4)}, nil,
			map[string][2]int64{UnnamedContainer: {7, 9}, "debug": {5, 7}, "loader": {6, 8}}},
		"one that was there": {nil, []Usage{{Container: "debug", Device: "gpu0"}, {Container: "loader", Device: "gpu1"}},
			map[string][2]int64{UnnamedContainer: {12, 14}, "debug": {12, 14}}},
		"who enforces, and who is of another pod": {[]Process{in(limits.GuardContainer, 1), in(limits.CheckContainer, 2), in("", 3)}, nil,
			map[string][2]int64{UnnamedContainer: {12, 14}}},
	} {
		got := map[string][2]int64{}
		for _, c := range restLimits(l, Device{ID: "gpu0", Processes: tc.processes}, tc.usages) {
			got[c.Name] = [2]int64{c.SliceBytes / gib, c.LimitBytes / gib}
			equal(t, name+": devices", c.GPUs, 2)
		}
		equal(t, name, got, tc.want)
	}
}
