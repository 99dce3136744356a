package usage

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// noon is within a day, so that lives cross its end.
const noon Second = 1_795_000_000

// TestDayCountsOnce: however the time is cut, and whoever cuts it, each second is counted once.
func TestDayCountsOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var pods []held
		truth := map[Key]Amount{}
		start, end := noon, noon+Second(1+random.IntN(200_000))
		for range random.IntN(20) {
			h := held{Key: Key{Namespace: fmt.Sprint("team-", random.IntN(3)), Pool: fmt.Sprint("pool-", random.IntN(2))},
				rate: Amount{random.Int64N(80_000), random.Int64N(28_828_800)}, from: start - 5000 + Second(random.IntN(210_000))}
			if random.IntN(3) > 0 {
				h.until = h.from + Second(random.IntN(90_000)) + 1
			}
			pods = append(pods, h)
			truth[h.Key] = truth[h.Key].plus(h.rate.times(h.within(start, end)))
		}
		got := map[Key]Amount{}
		for d := newDay(start); ; {
			next := d.plus(pods, min(end, d.Until+Second(random.IntN(9000))), start)
			if len(next.Unread) > 0 {
				t.Fatalf("nothing was unread: %v", next.Unread)
			}
			d = next
			if d.Until == d.end() || d.Until == end {
				for _, l := range d.Lines {
					if l.Unsure != (Amount{}) {
						t.Fatalf("nothing is unsure: %+v", l)
					}
					got[l.Key] = got[l.Key].plus(l.Held)
				}
			}
			if d.Until == end {
				break
			}
			if d.Until == d.end() {
				d = d.next()
			}
		}
		for k := range truth {
			if got[k] != truth[k] {
				t.Fatalf("%v: counted %v, held was %v", k, got[k], truth[k])
			}
		}
	}
}

// TestDayNamesGaps: what went while nobody watched is unsure, at most what it can have held; what is still there is counted.
func TestDayNamesGaps(t *testing.T) {
	stays := held{Key: Key{Namespace: "a"}, rate: Amount{10, 1}, from: noon - 100}
	goes := held{Key: Key{Namespace: "a"}, rate: Amount{7, 2}, from: noon - 100}
	known := held{Key: Key{Namespace: "b"}, rate: Amount{5, 3}, from: noon - 100, until: noon + 150}
	d := newDay(noon).plus([]held{stays, goes, known}, noon+100, noon)
	d = d.plus([]held{stays, known}, noon+300, noon+200)
	d = d.plus([]held{stays}, noon+400, noon+200)
	want := []Line{
		{Key: Key{Namespace: "a"}, Held: Amount{10*400 + 7*100, 1*400 + 2*100}, Unsure: Amount{7 * 100, 2 * 100}, Open: Amount{10, 1}},
		{Key: Key{Namespace: "b"}, Held: Amount{5 * 150, 3 * 150}},
	}
	if fmt.Sprint(d.Lines) != fmt.Sprint(want) {
		t.Errorf("counted\n%+v, want\n%+v", d.Lines, want)
	}
	if want := []Span{{noon + 100, noon + 200}}; fmt.Sprint(d.Unread) != fmt.Sprint(want) {
		t.Errorf("unread %v, want %v", d.Unread, want)
	}
}

// TestDayTakesTheEndOfTheMissed: when a pod went that the watch missed is not known, and it is not counted as held since the count before.
func TestDayTakesTheEndOfTheMissed(t *testing.T) {
	missed := held{Key: Key{Namespace: "a"}, rate: Amount{10, 1}, from: noon, until: noon + 160, lost: true}
	d := newDay(noon)
	before := missed
	before.until, before.lost = 0, false
	d = d.plus([]held{before}, noon+100, noon)
	d = d.plus([]held{missed}, noon+200, noon)
	if l := d.Lines[0]; l.Held != (Amount{1000, 100}) || l.Unsure != (Amount{600, 60}) || l.Open != (Amount{}) {
		t.Errorf("counted %+v", l)
	}
}

// TestDayKnowsWhatWasOpen: a pod whose end is not known, and that was not open, had ended before the count began.
func TestDayKnowsWhatWasOpen(t *testing.T) {
	stays := held{Key: Key{Namespace: "a"}, rate: Amount{10, 1}, from: noon}
	old := held{Key: Key{Namespace: "a"}, rate: Amount{7, 2}, from: noon - 20*dayLength, until: noon + 200, lost: true}
	d := newDay(noon).plus([]held{stays}, noon+100, noon)
	d = d.plus([]held{stays, old}, noon+300, noon+200)
	if l := d.Lines[0]; len(d.Lines) != 1 || l.Unsure != (Amount{}) || l.Held != (Amount{3000, 300}) {
		t.Errorf("counted %+v", d.Lines)
	}
}

// TestDayFollowsLabels: a pod that has another label after a gap is counted once.
func TestDayFollowsLabels(t *testing.T) {
	h := held{Key: Key{Namespace: "a", Label: "team=x"}, rate: Amount{10, 1}, from: noon}
	goes := held{Key: h.Key, rate: Amount{3, 1}, from: noon}
	other := held{Key: Key{Namespace: "b"}, rate: Amount{10, 1}, from: noon}
	d := newDay(noon).plus([]held{h, goes, other}, noon+100, noon)
	h.Label = "team=y"
	d = d.plus([]held{h}, noon+300, noon+200)
	unsure := map[string]Amount{}
	for _, l := range d.Lines {
		unsure[l.Namespace] = unsure[l.Namespace].plus(l.Unsure)
	}
	if unsure["a"] != (Amount{300, 100}) || unsure["b"] != (Amount{1000, 100}) {
		t.Errorf("counted %+v", d.Lines)
	}
}

// TestDayUse: use is counted for the time in which it was read, and unknown for the rest.
func TestDayUse(t *testing.T) {
	h := held{Key: Key{Namespace: "a"}, rate: Amount{10, 1}, from: noon - 100, use: 4, used: true}
	d := newDay(noon).plus([]held{h}, noon+60, noon)
	h.used = false
	d = d.plus([]held{h}, noon+120, noon)
	h.used = true
	d = d.plus([]held{h}, noon+160, noon+150)             // nobody watched for 30 seconds
	d = d.plus([]held{h}, noon+160+maxUseAge+1, noon+150) // what is used now says nothing of so long ago
	if l := d.Lines[0]; l.Used != 4*70 || l.Read != 10*70 || l.Held.Memory != 10*(160+maxUseAge+1) {
		t.Errorf("counted %+v", l)
	}
}

// TestDayBounds: whoever makes up labels, or has thousands of namespaces, fills no ConfigMap, and nothing of what is held is lost.
func TestDayBounds(t *testing.T) {
	var pods []held
	var truth Amount
	add := func(k Key) {
		h := held{Key: k, rate: Amount{1e12, 5}, from: noon - 5}
		pods, truth = append(pods, h), truth.plus(h.rate.times(60))
	}
	long := strings.Repeat("x", 63)
	for i := range 3000 {
		add(Key{Namespace: "hostile" + long[7:], Pool: strings.Repeat("p", maxName),
			Label: fmt.Sprintf("%s/%s=%d", strings.Repeat("k", 253), long, i)})
	}
	for i := range 200 {
		for j := range 60 {
			add(Key{Namespace: fmt.Sprintf("%s%03d", long[3:], i), Pool: strings.Repeat("p", maxName),
				Label: fmt.Sprintf("%s/%s=%s%02d", strings.Repeat("k", 253), long, long[2:], j)})
		}
	}
	for i := range 3000 {
		add(Key{Namespace: fmt.Sprintf("%s%04d", long[4:], i), Pool: strings.Repeat("p", maxName)})
	}
	d := newDay(noon).plus(pods, noon+60, noon)
	text, err := d.encode()
	if err != nil || len(d.Lines) > maxLines+1 {
		t.Fatalf("%d lines: %v", len(d.Lines), err)
	}
	var sum Amount
	for _, l := range d.Lines {
		sum = sum.plus(l.Held)
	}
	again, err := decode(text)
	if err != nil || sum != truth || fmt.Sprint(again) != fmt.Sprint(d) {
		t.Errorf("%d bytes, counted %v of %v: %v", len(text), sum, truth, err)
	}
	later := again.plus(pods, noon+120, noon)
	if len(later.Lines) != len(d.Lines) {
		t.Errorf("%d lines became %d", len(d.Lines), len(later.Lines))
	}
}

// TestDayHasRoom: lines whose numbers and labels are long do not stop the count, and nothing of them is lost.
func TestDayHasRoom(t *testing.T) {
	for _, key := range []int{317, 63} {
		d, pool := newDay(noon), strings.Repeat("p", maxName-2)
		for i := range maxLines {
			k := Key{Namespace: fmt.Sprintf("%063d", i/maxLabels), Pool: fmt.Sprintf("%s%02d", pool, i%maxLabels)}
			if i < maxLines/2 {
				k.Label = strings.Repeat("k", key) + "=" + strings.Repeat("v", 63)
			}
			most := Amount{1e15, 1e15}
			d.Lines = append(d.Lines, Line{Key: k, Held: most, Unsure: Amount{9e18, 9e18}, Used: 9e18, Read: 9e18})
		}
		var pods []held
		for _, l := range d.Lines {
			pods = append(pods, held{Key: l.Key, rate: Amount{1e12, 1e12}, from: noon})
		}
		next := d.plus(pods, noon+1000, noon)
		text, err := next.encode()
		var sum Amount
		for _, l := range next.Lines {
			sum = sum.plus(l.Held)
		}
		if err != nil || sum != (Amount{maxLines * 2e15, maxLines * 2e15}) || len(next.Lines) < maxLines/2 {
			t.Errorf("%d bytes, %d lines, counted %v: %v", len(text), len(next.Lines), sum, err)
		}
	}
}

// TestDaySpans: gaps without end do not make a Day longer.
func TestDaySpans(t *testing.T) {
	d := newDay(noon)
	for range 3 * maxSpans {
		d = d.plus(nil, d.Until+5, d.Until+2)
		d = d.plus(nil, d.Until+5, d.Until)
	}
	if n := len(d.Unread); n != maxSpans || d.Unread[n-1].Until != d.Until-8 {
		t.Errorf("%d spans, the last is %v of %v", n, d.Unread[n-1], d.Until)
	}
}

func TestDecode(t *testing.T) {
	for _, text := range []string{"", "{}", `{"v":2,"from":"2026-11-22T00:00:00Z","until":"2026-11-22T00:00:00Z"}`,
		`{"v":1,"from":"2026-11-22T10:00:00Z","until":"2026-11-22T09:00:00Z"}`,
		`{"v":1,"from":"2026-11-22T10:00:00Z","until":"2026-11-24T09:00:00Z"}`,
		strings.Repeat(" ", maxText) + "{}"} {
		if d, err := decode(text); err == nil {
			t.Errorf("%.40q is read as %v", text, d)
		}
	}
}
