package guard

import (
	"strings"
	"testing"
)

// Lists that a device gives one after the other, as of 10, 20 and so on.
func TestSightings(t *testing.T) {
	t.Parallel()
	type process struct {
		start uint64
		at    string
	}
	const away, lost = "away", "lost" // the PID is not listed; the list cannot be read
	for name, tc := range map[string]struct {
		lists []any // the process that has the PID when it is listed, or one of the words
		want  []string
	}{
		"one that stays": {[]any{process{5, "a"}, process{5, "a"}}, []string{"a", "a"}},
		"one that exits": {[]any{process{5, "a"}, process{}}, []string{"a", "was a"}},
		"another that gets its PID": {[]any{process{5, "a"}, process{15, "b"}, process{15, "b"}},
			[]string{"a", "was a has b", "was a has b"}},
		"another of the same place": {[]any{process{5, "a"}, process{15, "a"}}, []string{"a", "was a has a"}},
		"another after nobody had it": {[]any{process{5, "a"}, process{}, process{25, "b"}},
			[]string{"a", "was a", "was a has b"}},
		"another after a break":                         {[]any{process{5, "a"}, away, process{25, "b"}}, []string{"a", "", "b"}},
		"another after lists that could not be read":    {[]any{process{5, "a"}, lost, process{25, "b"}}, []string{"a", "", "was a has b"}},
		"one that began while it was listed":            {[]any{process{10, "a"}, process{10, "a"}}, []string{"has a", "a"}},
		"one that nobody had when it was listed first":  {[]any{process{}, process{15, "a"}}, []string{"", "has a"}},
		"one that cannot be read any more":              {[]any{process{5, "a"}, process{5, ""}}, []string{"a", "was a"}},
		"one that cannot be read, and can later":        {[]any{process{5, ""}, process{5, "a"}}, []string{"", "a"}},
		"one of the node whose PID a tenant gets":       {[]any{process{5, ""}, process{15, "a"}}, []string{"", "has a"}},
		"a tenant's whose PID a process of the node is": {[]any{process{5, "a"}, process{15, ""}}, []string{"a", "was a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s Sightings[string]
			var got []string
			for i, list := range tc.lists {
				d := Device{ID: "gpu0", AsOf: uint64(10 * (i + 1)), Processes: []Process{{PID: 7, UsedBytes: gib, Known: true}}}
				switch list {
				case away:
					d.Processes = nil
				case lost:
					d.Processes, d.Fault = nil, lost
				}
				text := ""
				for _, p := range s.Identify(d, func(p Process) (Process, string) {
					has, _ := list.(process)
					p.Start = has.start
					return p, has.at
				}) {
					for i, at := range []string{p.At, p.Was, p.Has} {
						if at != "" {
							text += []string{"", " was ", " has "}[i] + at
						}
					}
				}
				got = append(got, strings.TrimSpace(text))
			}
			equal(t, "whose", got, tc.want)
		})
	}
}
