package usage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/webhook/leader/days"
)

// Bounds on a Day, which is one ConfigMap.
const (
	maxLines  = 1500 // of which half may have a label
	maxLabels = 50   // lines of one namespace with a label
	maxSpans  = 200
	maxText   = days.MaxBytes
	maxName   = 128 // bytes of a pool's name
)

// version is the version of the format.
const version = 1

// maxUseAge is the longest time for which the pods' present use counts.
const maxUseAge = 3 * 60

// Key identifies a line of a Day.
type Key struct {
	Namespace string `json:"namespace,omitempty"` // "": any, beyond the number of lines that a Day may have
	Pool      string `json:"pool,omitempty"`
	Label     string `json:"label,omitempty"` // KEY=VALUE of the pods; "": they have no such label
	Rest      bool   `json:"rest,omitempty"`  // the pods have labels beyond the number of lines that a Day may have
}

func (k Key) compare(o Key) int {
	rest := func(k Key) int {
		if k.Rest {
			return 1
		}
		return 0
	}
	return cmp.Or(strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Pool, o.Pool),
		strings.Compare(k.Label, o.Label), cmp.Compare(rest(k), rest(o)))
}

// Line is the total of the pods of one Key in a Day.
type Line struct {
	Key
	Held Amount `json:"held,omitzero"` // times seconds
	// Unsure is the most that pods that went while nobody watched held beside the rest.
	Unsure Amount `json:"unsure,omitzero"`
	Used   int64  `json:"used,omitempty"` // MiB x seconds
	// Read is the memory of Held of which the use was read; of the rest it is unknown.
	Read int64 `json:"read,omitempty"`
	// Open is the pods' holding at the end of the counted time, each second.
	Open Amount `json:"open,omitzero"`
}

// Span is a time from From until before Until.
type Span struct {
	From  Second `json:"from"`
	Until Second `json:"until"`
}

// Day is the total of a UTC day, from From until Until. It is immutable.
type Day struct {
	Version int    `json:"v"`
	From    Second `json:"from"`
	Until   Second `json:"until"`
	// Unread are the times in which nobody watched: the holdings of pods that went then are not counted.
	Unread []Span `json:"unread,omitempty"`
	Lines  []Line `json:"lines"` // by Key
}

// newDay is a Day of which nothing is counted yet, from a time on.
func newDay(from Second) *Day {
	return &Day{Version: version, From: from, Until: from, Lines: []Line{}}
}

// end is when the UTC day ends.
func (d *Day) end() Second { return d.From.startOfDay() + dayLength }

// next is the Day after one that is counted to its end, with the open holdings.
func (d *Day) next() *Day {
	next := newDay(d.end())
	for _, l := range d.Lines {
		if l.Open != (Amount{}) {
			next.Lines = append(next.Lines, Line{Key: l.Key, Open: l.Open})
		}
	}
	return next
}

// held is the holding of one pod, from From until Until.
type held struct {
	Key
	rate  Amount
	from  Second
	until Second // 0: it goes on
	// lost reports whether until is only when its end was noticed.
	lost bool
	// use is the memory that it uses now, in MiB, if used is true.
	use  int64
	used bool
}

// within is how much of a time the pod holds its slice.
func (h *held) within(from, until Second) Second {
	if h.until != 0 {
		until = min(until, h.until)
	}
	return max(until-max(from, h.from), 0)
}

// across reports whether the pod holds its slice before s and after.
func (h *held) across(s Second) bool { return h.from < s && (h.until == 0 || h.until > s) }

// plus is the Day counted on until a time within it. Since watched, every pod that went was seen.
func (d *Day) plus(pods []held, until, watched Second) *Day {
	until = min(until, d.end())
	if until <= d.Until {
		return d
	}
	t := newTable(d.Lines)
	from, seen := d.Until, min(max(d.Until, watched), until)
	before := t.takeOpen()
	var lost []*held // bound before the count began
	for i := range pods {
		h := &pods[i]
		if h.until != 0 && h.until <= from || h.from >= until {
			continue
		}
		if h.lost && h.across(from) {
			lost = append(lost, h)
			continue
		}
		t.count(t.line(h.Key), h, from, seen, until)
	}
	t.addMissing(before, lost, Span{from, until}, seen)
	next := &Day{Version: version, From: d.From, Until: until, Unread: d.Unread, Lines: t.sorted()}
	if from < seen {
		next.Unread = withSpan(d.Unread, Span{from, seen})
	}
	return next.compact()
}

// compact is the Day with lines added to the lines for the rest, the longest first, until its text fits: labels before others.
func (d *Day) compact() *Day {
	for _, ownLabel := range []bool{true, false} {
		for {
			text, err := json.Marshal(d)
			if err != nil || len(text) <= maxText {
				return d
			}
			folded := d.fold(ownLabel)
			if folded == nil {
				break
			}
			d = folded
		}
	}
	return d
}

// fold adds a tenth of the lines to the lines for the rest; nil: there are none to add.
func (d *Day) fold(ownLabel bool) *Day {
	lines := slices.Clone(d.Lines)
	long := func(l *Line) int { return len(l.Namespace) + len(l.Pool) + len(l.Label) }
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(long(&b), long(&a)) })
	t, left := newTable(nil), len(lines)/10+1
	var folded []Line
	for _, l := range lines {
		if left > 0 && (ownLabel && l.Label != "" || !ownLabel && l.Key != (Key{})) {
			left--
			folded = append(folded, l)
			continue
		}
		t.add(l)
	}
	for _, l := range folded {
		k := Key{}
		if ownLabel {
			k = Key{Namespace: l.Namespace, Pool: l.Pool, Rest: true}
		}
		rest, ok := t.lines[k]
		if !ok {
			rest = t.add(Line{Key: k})
		}
		rest.Held, rest.Unsure, rest.Open = rest.Held.plus(l.Held), rest.Unsure.plus(l.Unsure), rest.Open.plus(l.Open)
		rest.Used, rest.Read = addSaturated(rest.Used, l.Used), addSaturated(rest.Read, l.Read)
	}
	if len(folded) == 0 {
		return nil
	}
	next := *d
	next.Lines = t.sorted()
	return &next
}

// withSpan returns spans with another one after them. Beyond maxSpans the last one takes the time between.
func withSpan(spans []Span, s Span) []Span {
	out := slices.Clone(spans)
	if n := len(out); n > 0 && (out[n-1].Until >= s.From || n >= maxSpans) {
		out[n-1].Until = s.Until
		return out
	}
	return append(out, s)
}

// encode returns the Day as text.
func (d *Day) encode() (string, error) {
	text, err := json.Marshal(d)
	if err == nil && len(text) > maxText {
		err = fmt.Errorf("%d bytes, at most %d", len(text), maxText)
	}
	if err != nil {
		return "", fmt.Errorf("encode a day: %w", err)
	}
	return string(text), nil
}

// decode reads a Day.
func decode(text string) (*Day, error) {
	var d Day
	if len(text) > maxText {
		return nil, fmt.Errorf("%d bytes, at most %d", len(text), maxText)
	}
	err := json.Unmarshal([]byte(text), &d)
	if err := days.CheckFormat(d.Version, version, err); err != nil {
		return nil, err
	}
	if d.Until < d.From || d.Until > d.end() {
		return nil, fmt.Errorf("it ends at %s", d.Until.Time())
	}
	return &d, nil
}
