package guard

import "testing"

func TestDoubleCountedBytes(t *testing.T) {
	t.Parallel()
	before := Usage{Container: "trainer", ListedBytes: 6 * gib, DoubleCountedBytes: 2 * gib}
	for name, tc := range map[string]struct {
		listed, largest, moved int64 // GiB
		change                 func(*reading)
		want                   int64
	}{
		"nothing moves":                                        {6, 3, 0, nil, 2},
		"an allocation":                                        {9, 5, 3, nil, 2},
		"a mapping":                                            {9, 5, 0, nil, 4}, // no more than all but the largest
		"a mapping and an allocation":                          {10, 3, 3, nil, 3},
		"an allocation while a neighbor frees":                 {8, 3, -5, nil, 4},
		"an allocation while a neighbor does":                  {8, 3, 9, nil, 2},
		"the end of a mapping":                                 {4, 2, 0, nil, 0},
		"memory is freed":                                      {4, 2, -2, nil, 2},
		"memory is freed and a neighbor takes it":              {5, 2, 0, nil, 1},
		"one process is left":                                  {3, 3, -3, nil, 0},
		"list and total do not belong together":                {9, 5, 0, func(r *reading) { r.Moving = true }, 2},
		"the list cannot be trusted":                           {9, 5, 0, func(r *reading) { r.trusted = false }, 2},
		"the first list":                                       {9, 5, 0, func(r *reading) { r.before.ConsistentBytes = 0 }, 2},
		"a device that does not report its total":              {9, 5, 0, func(r *reading) { r.UsedBytes = 0 }, 2},
		"an allocation while another container frees as much":  {9, 5, 0, another(3, 0), 2},
		"a mapping while another container frees":              {9, 5, -3, another(3, 0), 4},
		"the same while another is seen to exit":               {9, 5, 0, another(3, -1), 2},
		"an allocation while one of another pod frees as much": {9, 5, 0, anotherPods(3, 0), 2},
		"a mapping while one of another pod allocates":         {9, 5, 3, anotherPods(0, 3), 2},
		"the end of a mapping while another container frees":   {4, 2, -2, another(2, 0), 0},
		"what another frees of which there is no figure":       {9, 5, 0, another(3, 3), 4},
		"a mapping while another lets go of what it shares":    {9, 5, 0, sharing(3, another(3, -1)), 4},
		"an allocation while others free more than they share": {9, 5, 0, sharing(1, another(4, -1)), 2},
		"the exit of a process of its own, beside a mapping":   {9, 5, 0, ownExit(3), 4},
		"what a process of its own frees":                      {9, 5, 0, own(3), 4},
	} {
		r := trusted()
		r.before.ConsistentBytes, r.UsedBytes = 40*gib, (40+tc.moved)*gib
		if tc.change != nil {
			tc.change(&r)
		}
		equal(t, name, before.doubleCountedBytes(r, tc.listed*gib, tc.largest*gib), tc.want*gib)
	}
}

// another lets a process of another container come from so many GiB to so many; -1: it
// exits.
func another(from, to int64) func(*reading) {
	return func(r *reading) {
		before, after := python(300, from), python(300, to)
		before.Container, after.Container, after.Known = "scorer", "scorer", to == 0
		r.before.Consistent, r.Processes = []Process{before}, []Process{after}
		if to < 0 {
			r.Processes = nil
		}
	}
}

// anotherPods does the same to a process of another pod, for a reader that sees it.
func anotherPods(from, to int64) func(*reading) {
	return func(r *reading) {
		before, after := python(300, from), python(300, to)
		before.Container, after.Container = "", ""
		r.before.Consistent, r.Everyone = []Process{before}, []Process{after}
	}
}

// sharing lets others share so many GiB.
func sharing(gibs int64, change func(*reading)) func(*reading) {
	return func(r *reading) {
		change(r)
		r.DoubleCounted = gibs * gib
	}
}

// ownExit lets a process of the container that was listed with so many GiB exit.
func ownExit(gibs int64) func(*reading) {
	return func(r *reading) {
		before := python(300, gibs)
		before.Container = "trainer"
		r.before.Consistent, r.Processes, r.Everyone = []Process{before}, nil, []Process{}
	}
}

// own lets a process of the container free so many GiB.
func own(gibs int64) func(*reading) {
	return func(r *reading) {
		before, after := python(300, gibs), python(300, 0)
		r.Processes = []Process{after}
		before.Container, after.Container = "", "" // everyone's list names no containers
		r.before.Consistent, r.Everyone = []Process{before}, []Process{after}
	}
}

func TestDoubleCountedOn(t *testing.T) {
	t.Parallel()
	usages := []Usage{{Container: "scorer", Device: "gpu0", DoubleCountedBytes: 1},
		{Container: "trainer", Device: "gpu0", DoubleCountedBytes: 2},
		{Container: "trainer", Device: "gpu1", DoubleCountedBytes: 3}}
	for _, u := range usages {
		equal(t, u.Container+" on "+u.Device, doubleCountedOn(usages, u.Container, u.Device), u.DoubleCountedBytes)
	}
	equal(t, "of one that shares nothing", doubleCountedOn(usages, "loader", "gpu0"), int64(0))
}
