package peaks

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/webhook/leader/days"
	"github.com/gpuslice/gpuslice/webhook/leader/workload"
)

// Bounds on a Day, which is one ConfigMap.
const (
	maxLines = 10_000
	maxText  = 16 << 20 // bytes, unzipped
)

const (
	version    = 1
	hoursOfDay = 24
	slotLength = 5 * time.Minute
	// slotsOfHour are the parts of an hour in which use was reported, or was not.
	slotsOfHour = int(time.Hour / slotLength)
)

// level is an amount of memory of 2^((level-1)/64) MiB, rounded up by at most 1.1 %; 0: none.
type level uint16

const (
	levelsOfDoubling = 64
	maxLevel         = 24*levelsOfDoubling + 1 // 16 TiB
)

func levelOf(mib int64) level {
	if mib < 1 {
		return 0
	}
	return min(level(math.Ceil(levelsOfDoubling*math.Log2(float64(mib))-1e-9))+1, maxLevel)
}

// mib is the amount.
func (l level) mib() float64 {
	if l == 0 {
		return 0
	}
	return math.Exp2(float64(l-1) / levelsOfDoubling)
}

// hours is a set of hours of a day, a bit each.
type hours uint32

func (h hours) count() int        { return bits.OnesCount32(uint32(h)) }
func (h hours) has(hour int) bool { return h>>hour&1 == 1 }

// Line is the use of a container of a workload, the highest of its pods.
type Line struct {
	workload.Container
	Slice  int64 `json:"sliceMiB,omitempty"`  // that its pods had last
	Device int64 `json:"deviceMiB,omitempty"` // memory of the largest GPU that they were on last
	Pods   int   `json:"pods,omitempty"`      // that it had last
	// Peaks and Seen are by hour: the highest use, and the parts of the hour in which use was reported, a bit each.
	Peaks [hoursOfDay]level  `json:"peaks"`
	Seen  [hoursOfDay]uint16 `json:"seen"`
	// The hours in which its container started, in which a guard terminated a process of it, and in which the node ran out of host memory.
	Started    hours `json:"started,omitempty"`
	Terminated hours `json:"terminated,omitempty"`
	OOMKilled  hours `json:"oomKilled,omitempty"`
}

// slots is in how many parts of an hour use was reported.
func (l *Line) slots() (n int) {
	for _, seen := range l.Seen {
		n += bits.OnesCount16(seen)
	}
	return n
}

// unite takes what another record of the same day has of the container. The other's slice, device and pods are the later ones.
func (l *Line) unite(o *Line) {
	for i := range l.Peaks {
		l.Peaks[i] = max(l.Peaks[i], o.Peaks[i])
		l.Seen[i] |= o.Seen[i]
	}
	l.Started, l.Terminated, l.OOMKilled = l.Started|o.Started, l.Terminated|o.Terminated, l.OOMKilled|o.OOMKilled
	l.Slice, l.Device, l.Pods = cmp.Or(o.Slice, l.Slice), cmp.Or(o.Device, l.Device), o.Pods
}

// Day is the use of workloads in a UTC day.
type Day struct {
	Version int    `json:"v"`
	Date    string `json:"day"` // 2026-11-26
	// Unrecorded is how many pods had more than one slice, the most at one time.
	Unrecorded int `json:"unrecorded,omitempty"`
	// LeftOut is how many workloads had no room in the record, the most at one time.
	LeftOut int    `json:"leftOut,omitempty"`
	Lines   []Line `json:"lines"` // by Container
}

// truncate keeps at most so many lines: no namespace has a further one before each other has as many, and containers that were seen for
// longer come first.
func (d *Day) truncate(most int) {
	over := len(d.Lines) - most
	if over <= 0 {
		return
	}
	slices.SortFunc(d.Lines, func(a, b Line) int { return cmp.Or(cmp.Compare(b.slots(), a.slots()), compare(a, b)) })
	workload.InTurn(d.Lines, func(l Line) workload.Container { return l.Container })
	d.Lines = d.Lines[:most]
	slices.SortFunc(d.Lines, compare)
	d.LeftOut = max(d.LeftOut, over)
}

func compare(a, b Line) int { return a.Compare(b.Container) }

// encode returns the Day as gzipped JSON, without the lines that have no room.
func (d *Day) encode() ([]byte, error) {
	for most := maxLines; ; {
		d.truncate(most)
		text, err := json.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("encode a day: %w", err)
		}
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, err = z.Write(text)
		if err = errors.Join(err, z.Close()); err != nil {
			return nil, fmt.Errorf("zip a day: %w", err)
		}
		if out.Len() <= days.MaxBytes && len(text) <= maxText {
			return out.Bytes(), nil
		}
		over := max(float64(out.Len())/days.MaxBytes, float64(len(text))/maxText)
		most = int(float64(len(d.Lines)) / over * 0.95)
	}
}

// decode reads the Day of a date.
func decode(zipped []byte, date string) (*Day, error) {
	if len(zipped) > days.MaxBytes {
		return nil, fmt.Errorf("%d bytes, at most %d", len(zipped), days.MaxBytes)
	}
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, fmt.Errorf("unzip: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("unzip: %w", err)
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("more than %d bytes unzipped", maxText)
	}
	var d Day
	err = json.Unmarshal(text, &d)
	if err := days.CheckFormat(d.Version, version, err); err != nil {
		return nil, err
	}
	return &d, d.check(date)
}

// check returns why no Day of that date is like that.
func (d *Day) check(date string) error {
	switch {
	case d.Date != date:
		return fmt.Errorf("it holds another day: %.20q", d.Date)
	case len(d.Lines) > maxLines:
		return fmt.Errorf("%d lines, at most %d", len(d.Lines), maxLines)
	case d.Unrecorded < 0 || d.LeftOut < 0:
		return errors.New("a negative number of pods")
	}
	for i := range d.Lines {
		if err := d.Lines[i].check(); err != nil {
			return fmt.Errorf("line %d: %w", i, err)
		}
	}
	return nil
}

func (l *Line) check() error {
	for _, name := range []string{l.Namespace, l.Name, strings.ToLower(l.Kind), l.Container.Container} {
		if len(name) > validation.DNS1123SubdomainMaxLength || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("%.70q is no name of a workload", name)
		}
	}
	const all = 1<<hoursOfDay - 1
	if l.Slice < 0 || l.Slice > 1<<24 || l.Device < 0 || l.Device > 1<<24 || l.Pods < 0 || l.Started|l.Terminated|l.OOMKilled > all {
		return errors.New("a slice, device, pods or hours that cannot be")
	}
	for i := range l.Peaks {
		if l.Peaks[i] > maxLevel || l.Seen[i] >= 1<<slotsOfHour {
			return errors.New("a peak that cannot be")
		}
	}
	return nil
}
