package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/price"
	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

// grouping selects the groups that have a row of their own.
type grouping struct {
	namespace, pool bool
	device          bool   // of FOCUS alone
	label           string // its key; "": none
}

func parseGrouping(by []string) (g grouping, err error) {
	for _, what := range by {
		key, isLabel := strings.CutPrefix(what, "label=")
		switch {
		case what == "namespace":
			g.namespace = true
		case what == "pool":
			g.pool = true
		case what == "device" && len(by) == 1:
			g.device = true
		case isLabel && g.label != "" && g.label != key:
			return g, errors.New("--by: one label at a time")
		case isLabel && len(validation.IsQualifiedName(key)) == 0:
			g.label = key
		default:
			return g, fmt.Errorf("--by %q: accepted: namespace, pool, label=KEY; for -o focus, device alone", what)
		}
	}
	return g, nil
}

// Names in rows that stand for several, or for none. No namespace, pool or label is called so.
const (
	other = "(other)"
	none  = "(none)"
)

// group identifies a row; a field that --by does not name is empty.
type group struct {
	Namespace string `json:"namespace,omitempty"`
	Pool      string `json:"pool,omitempty"`
	Label     string `json:"label,omitempty"`
}

// of is the group of a line.
func (g grouping) of(k usage.Key) (out group) {
	if g.namespace {
		out.Namespace = cmp.Or(k.Namespace, other)
	}
	if g.pool {
		out.Pool = cmp.Or(k.Pool, other)
	}
	if g.label != "" {
		value, ok := strings.CutPrefix(k.Label, g.label+"=")
		switch {
		case k.Rest || k.Namespace == "":
			out.Label = other
		case ok:
			out.Label = cmp.Or(value, none)
		default:
			out.Label = none
		}
	}
	return out
}

// row is the holding of one group: an item of -o json.
type row struct {
	group
	HeldGiBHours      float64  `json:"heldGiBHours"`
	HeldDeviceHours   float64  `json:"heldDeviceHours"`
	UsedGiBHours      *float64 `json:"usedGiBHours,omitempty"` // nil: nobody read it
	UsedReadRatio     float64  `json:"usedReadRatio"`
	UnsureGiBHours    float64  `json:"unsureGiBHours,omitempty"`
	UnsureDeviceHours float64  `json:"unsureDeviceHours,omitempty"`
	Cost              *float64 `json:"cost,omitempty"` // nil: a pool has no price

	read     float64 // GiB-hours of which the use was read
	unpriced bool
}

// report is the document of the command.
type report struct {
	cli.List[row]
	From           time.Time `json:"from"`
	Until          time.Time `json:"until"`
	CountedSeconds int64     `json:"countedSeconds"`
	UnreadSeconds  int64     `json:"unreadSeconds"`

	notes []string
}

// sum sums up days.
func (o *options) sum(span period, days []*usage.Day) *report {
	r := &report{List: cli.NewList[row]("UsageReport", nil), From: span.from, Until: span.until}
	rows, seen := map[group]*row{}, sighting{priced: map[string]bool{}, unpriced: map[string]bool{}}
	for _, d := range days {
		r.CountedSeconds += int64(d.Until - d.From)
		for _, s := range d.Unread {
			r.UnreadSeconds += int64(s.Until - s.From)
		}
		for _, l := range d.Lines {
			seen.note(o, l)
			if (l.Held != usage.Amount{} || l.Unsure != usage.Amount{}) && (o.namespace == "" || l.Namespace == o.namespace) {
				at := o.grouping.of(l.Key)
				if rows[at] == nil {
					rows[at] = &row{group: at}
				}
				o.add(rows[at], l, seen.unpriced)
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(rows), func(a, b group) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Pool, b.Pool), strings.Compare(a.Label, b.Label))
	}) {
		r.Items = append(r.Items, rows[at].finished(len(o.price) > 0))
	}
	r.notes = o.notes(r, span, days, seen)
	return r
}

// add adds a line to its row.
func (o *options) add(r *row, l usage.Line, unpriced map[string]bool) {
	r.HeldGiBHours += l.Held.GiBHours()
	r.HeldDeviceHours += l.Held.DeviceHours()
	r.UnsureGiBHours += l.Unsure.GiBHours()
	r.UnsureDeviceHours += l.Unsure.DeviceHours()
	r.read += usage.Amount{Memory: l.Read}.GiBHours()
	if l.Read > 0 {
		r.UsedGiBHours = new(value(r.UsedGiBHours) + usage.Amount{Memory: l.Used}.GiBHours())
	}
	if amount, by := priceOf(o.price, l.Pool); by != "" {
		r.Cost = new(value(r.Cost) + amount*l.Held.DeviceHours())
	} else {
		r.unpriced = true
		unpriced[cmp.Or(l.Pool, other)] = true
	}
}

func value(n *float64) float64 {
	if n == nil {
		return 0
	}
	return *n
}

// finished is the row once all is added.
func (r *row) finished(priced bool) row {
	if r.HeldGiBHours > 0 {
		r.UsedReadRatio = r.read / r.HeldGiBHours
	}
	if r.unpriced || !priced {
		r.Cost = nil
	}
	return *r
}

// sighting is the content of the lines, for notes.
type sighting struct {
	priced   map[string]bool // names that have a price, and stand for a pool
	unpriced map[string]bool // pools
	labelled bool
	beyond   float64 // GiB-hours of no namespace
}

func (s *sighting) note(o *options, l usage.Line) {
	if _, by := priceOf(o.price, l.Pool); by != "" {
		s.priced[by] = true
	}
	s.labelled = s.labelled || strings.HasPrefix(l.Label, o.grouping.label+"=")
	if l.Namespace == "" {
		s.beyond += l.Held.GiBHours()
	}
}

// notes list the gaps in the rows.
func (o *options) notes(r *report, span period, days []*usage.Day, seen sighting) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if missing := missingDays(span, days); len(missing) > 0 {
		add("not counted: %s: no replica of the webhook counted, or it is no longer kept", daysText(missing))
	}
	if partly := partlyCounted(span, days); len(partly) > 0 {
		add("counted in part: %s", strings.Join(partly, ", "))
	}
	if r.UnreadSeconds > 0 {
		add("nobody watched for %s: pods that were deleted then are not counted for that time; UNSURE is at most what those held that had started before",
			time.Duration(r.UnreadSeconds)*time.Second)
	}
	if o.namespace != "" && seen.beyond > 0 {
		add("%.1f GiB-hours are of namespaces without a line of their own: a day has a limited number of lines", seen.beyond)
	}
	if o.grouping.label != "" && !seen.labelled {
		add("no day counts by the label %s: set usage.label in the chart, or --usage-label of the webhook", o.grouping.label)
	}
	if len(o.price) > 0 && len(seen.unpriced) > 0 {
		add("no price: pool %s", strings.Join(slices.Sorted(maps.Keys(seen.unpriced)), ", "))
	}
	for _, pool := range slices.Sorted(maps.Keys(o.price)) {
		if pool != price.Any && !seen.priced[pool] {
			add("nothing was held in a pool called %s, which has a price", pool)
		}
	}
	return notes
}

// missingDays are the days of which nothing is counted.
func missingDays(span period, days []*usage.Day) (missing []time.Time) {
	have := map[time.Time]bool{}
	for _, d := range days {
		have[d.From.Time().Truncate(day)] = true
	}
	for at := span.from; at.Before(span.until); at = at.Add(day) {
		if !have[at] {
			missing = append(missing, at)
		}
	}
	return missing
}

// late is how far behind now a Day may be: it is written each minute.
const late = 5 * time.Minute

// partlyCounted names the days of which the beginning or the end is not counted.
func partlyCounted(span period, days []*usage.Day) (out []string) {
	for _, d := range days {
		from, until := d.From.Time(), d.Until.Time()
		start := from.Truncate(day)
		if from.Equal(start) && until.Add(late).After(earlier(start.Add(day), span.until)) {
			continue
		}
		out = append(out, fmt.Sprintf("%s from %s until %s", start.Format(time.DateOnly), from.Format("15:04"), until.Format("15:04")))
	}
	return out
}
