package peaks

import (
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/webhook/leader/days"
	"github.com/gpuslice/gpuslice/webhook/leader/workload"
)

// table are the lines of a Day while it is recorded.
type table struct {
	start               time.Time // of the day
	lines               map[workload.Container]*Line
	unrecorded, leftOut int
}

func newTable(at time.Time) *table {
	return &table{start: days.Start(at), lines: map[workload.Container]*Line{}}
}

// line is the line of a container. Once there are twice as many as a Day has, those without room go.
func (t *table) line(of workload.Container) *Line {
	if l := t.lines[of]; l != nil {
		return l
	}
	if len(t.lines) >= 2*maxLines {
		d := t.day()
		d.truncate(maxLines)
		t.lines, t.leftOut = map[workload.Container]*Line{}, d.LeftOut
		t.add(d)
	}
	l := &Line{Container: of}
	t.lines[of] = l
	return l
}

// add unites the table with another record of the same day.
func (t *table) add(d *Day) {
	for i := range d.Lines {
		if l := t.lines[d.Lines[i].Container]; l != nil {
			l.unite(&d.Lines[i])
		} else {
			own := d.Lines[i]
			t.lines[own.Container] = &own
		}
	}
	t.unrecorded, t.leftOut = max(t.unrecorded, d.Unrecorded), max(t.leftOut, d.LeftOut)
}

// day is the Day of the table.
func (t *table) day() *Day {
	d := &Day{Version: version, Date: t.start.Format(time.DateOnly), Unrecorded: t.unrecorded, LeftOut: t.leftOut, Lines: []Line{}}
	for _, l := range t.lines {
		d.Lines = append(d.Lines, *l)
	}
	slices.SortFunc(d.Lines, compare)
	return d
}

// use records that a container used so much at a time of the day.
func (t *table) use(l *Line, at time.Time, mib int64) {
	hour, slot := t.slot(at)
	l.Peaks[hour] = max(l.Peaks[hour], levelOf(mib))
	l.Seen[hour] |= 1 << slot
}

// slot is the part of the day of a time. A clock that is set back over midnight stays at the day's start.
func (t *table) slot(at time.Time) (hour, slot int) {
	since := max(at.Sub(t.start), 0)
	return int(since / time.Hour), int(since % time.Hour / slotLength)
}

// note adds the hour of a time to a set, if it is of the day and not after now. The times of a pod's status are by its node's clock.
func (t *table) note(set *hours, at, now time.Time) {
	if days.Start(at).Equal(t.start) && !at.After(now) {
		hour, _ := t.slot(at)
		*set |= 1 << hour
	}
}
