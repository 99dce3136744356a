package usage

import (
	"cmp"
	"maps"
	"slices"
)

// addMissing adds to Unsure the holdings that were open and are unknown now: until the end of pods that are lost was
// noticed, else until seen. A pod that is lost and was not open had terminated before. Known holdings beyond the open ones
// of their line were open in another one of the namespace: its label or pool has changed.
func (t *table) addMissing(before map[*Line]Amount, lost []*held, counted Span, seen Second) {
	moved := map[string]Amount{}
	for line, known := range t.known {
		moved[line.Namespace] = moved[line.Namespace].plus(known.less(before[line]))
	}
	missing := make(map[*Line]Amount, len(before))
	for _, line := range slices.SortedFunc(maps.Keys(before), func(a, b *Line) int { return a.compare(b.Key) }) {
		left := before[line].less(t.known[line])
		missing[line] = left.less(moved[line.Namespace])
		moved[line.Namespace] = moved[line.Namespace].less(left)
	}
	slices.SortFunc(lost, func(a, b *held) int { return cmp.Compare(b.until, a.until) }) // the most that they can have held
	for _, h := range lost {
		line := t.line(h.Key)
		rate := h.rate.atMost(missing[line])
		missing[line] = missing[line].less(rate)
		line.Unsure = line.Unsure.plus(rate.times(h.within(counted.From, counted.Until)))
	}
	for line, left := range missing {
		line.Unsure = line.Unsure.plus(left.times(seen - counted.From))
	}
}

// table are the lines of a Day while it is counted on.
type table struct {
	lines    map[Key]*Line
	labelled int
	labels   map[string]int // lines with a label, by namespace
	// known is the holding of known pods when the count began, each second.
	known map[*Line]Amount
}

func newTable(lines []Line) *table {
	t := &table{lines: make(map[Key]*Line, len(lines)), labels: map[string]int{}, known: map[*Line]Amount{}}
	for _, l := range lines {
		t.add(l)
	}
	return t
}

func (t *table) add(l Line) *Line {
	if l.Label != "" {
		t.labelled++
		t.labels[l.Namespace]++
	}
	t.lines[l.Key] = &l
	return &l
}

// takeOpen takes the open holding from each line.
func (t *table) takeOpen() map[*Line]Amount {
	out := make(map[*Line]Amount, len(t.lines))
	for _, l := range t.lines {
		if l.Open != (Amount{}) {
			out[l], l.Open = l.Open, Amount{}
		}
	}
	return out
}

// line is the line of a Key, or one that takes more: labels are the tenants' own, so that they may not fill the Day.
func (t *table) line(k Key) *Line {
	if l, ok := t.lines[k]; ok {
		return l
	}
	if k.Label != "" && (t.labels[k.Namespace] >= maxLabels || t.labelled >= maxLines/2) {
		return t.line(Key{Namespace: k.Namespace, Pool: k.Pool, Rest: true})
	}
	if k != (Key{}) && len(t.lines) >= maxLines {
		return t.line(Key{})
	}
	return t.add(Line{Key: k})
}

// count counts a pod: until seen, where nobody watched, and from then on.
func (t *table) count(line *Line, h *held, from, seen, until Second) {
	if h.across(from) {
		t.known[line] = t.known[line].plus(h.rate)
	}
	if h.lost {
		line.Unsure = line.Unsure.plus(h.rate.times(h.within(from, until)))
		return
	}
	line.Held = line.Held.plus(h.rate.times(h.within(from, until)))
	if h.used && until-seen <= maxUseAge {
		seconds := h.within(seen, until)
		line.Used = addSaturated(line.Used, multiplySaturated(h.use, int64(seconds)))
		line.Read = addSaturated(line.Read, h.rate.times(seconds).Memory)
	}
	if h.across(until) {
		line.Open = line.Open.plus(h.rate)
	}
}

func (t *table) sorted() []Line {
	out := make([]Line, 0, len(t.lines))
	for _, l := range t.lines {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Line) int { return a.compare(b.Key) })
	return out
}
