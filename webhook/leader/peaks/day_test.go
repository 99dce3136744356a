package peaks

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/webhook/leader/days"
	"github.com/gpuslice/gpuslice/webhook/leader/workload"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func container(namespace, name string) workload.Container {
	return workload.Container{Namespace: namespace, Owner: workload.Owner{Kind: "Deployment", Name: name}, Container: "main"}
}

// someDay is a Day with so many lines of any kind, of few workloads.
func someDay(r *rand.Rand, n int) *Day {
	t := newTable(noon)
	for range n {
		l := t.line(container(fmt.Sprint("team-", r.IntN(3)), fmt.Sprint("web-", r.IntN(4))))
		t.use(l, t.start.Add(time.Duration(r.IntN(24*60))*time.Minute), r.Int64N(1<<17))
		t.note(&l.Started, t.start.Add(time.Duration(r.IntN(48))*time.Hour), noon)
		t.note(&l.Terminated, t.start.Add(time.Duration(r.IntN(48))*time.Hour), noon)
	}
	t.unrecorded = r.IntN(3)
	return t.day()
}

func united(all ...*Day) *Day {
	t := newTable(noon)
	for _, d := range all {
		t.add(d)
	}
	return t.day()
}

// TestUnite: records of a day are united to the same, in whatever order and however often.
func TestUnite(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(1, seed))
		a, b, c := someDay(r, 20), someDay(r, 20), someDay(r, 5)
		want := united(a, b, c)
		for name, got := range map[string]*Day{
			"another order": united(c, a, b), "more than once": united(a, b, a, c, b, c),
			"in two steps": united(a, united(b, c)), "with itself": united(want, want),
		} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// TestLevel: an amount is never kept as less, and as at most 1.1 % more.
func TestLevel(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 100_000 {
		mib := 1 + r.Int64N(1<<(1+i%24))
		if got := levelOf(mib).mib(); got < float64(mib)*(1-1e-9) || got > float64(mib)*1.011 {
			t.Fatalf("%d is kept as %g", mib, got)
		}
	}
	if levelOf(0) != 0 || level(0).mib() != 0 || levelOf(1<<40) != maxLevel || levelOf(1<<14).mib() != 1<<14 {
		t.Error("the ends, or a power of two")
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		d := someDay(rand.New(rand.NewPCG(2, seed)), 30)
		data, err := d.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(data, d.Date)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestFit: a namespace that floods the record takes the room that others leave, and what was seen for longest stays.
func TestFit(t *testing.T) {
	t.Parallel()
	table := newTable(noon)
	for i := range 3 * maxLines {
		table.use(table.line(container("flood", fmt.Sprint("job-", i))), noon, 1)
	}
	for i := range 40 {
		table.use(table.line(container("team-a", fmt.Sprint("web-", i))), noon, 1)
	}
	old := table.line(container("flood", "zz-old"))
	for hour := range 12 {
		table.use(old, table.start.Add(time.Duration(hour)*time.Hour), 1)
	}
	if len(table.lines) > 2*maxLines {
		t.Errorf("%d lines in memory", len(table.lines))
	}
	d := table.day()
	d.truncate(100)
	count := map[string]int{}
	kept := false
	for _, l := range d.Lines {
		count[l.Namespace]++
		kept = kept || l.Name == "zz-old"
	}
	if count["team-a"] != 40 || count["flood"] != 60 || !kept || d.LeftOut == 0 {
		t.Errorf("%v, the old one is kept: %t, left out: %d", count, kept, d.LeftOut)
	}
	abuse.Report(t, abuse.Attempt{Threat: "A37", Attack: "thousands of workloads in one namespace", Outcome: abuse.Contained,
		Words: fmt.Sprintf("of 100 lines, %d are of the other namespace, all that it has", count["team-a"])})
}

// TestLongestNames: names that do not compress leave a Day within its bounds.
func TestLongestNames(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 3))
	d := &Day{Version: version, Date: noon.Format(time.DateOnly)}
	for i := range maxLines {
		var name strings.Builder
		for name.Len() < 240 {
			name.WriteByte("abcdefghijklmnopqrstuvwxyz0123456789"[r.IntN(36)])
		}
		l := Line{Container: container(fmt.Sprint("team-", i%7), name.String())}
		for hour := range l.Peaks {
			l.Peaks[hour], l.Seen[hour] = level(r.IntN(maxLevel)), uint16(r.IntN(1<<slotsOfHour))
		}
		d.Lines = append(d.Lines, l)
	}
	data, err := d.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(data, d.Date)
	if err != nil || len(got.Lines) < 1000 || got.LeftOut == 0 || len(data) > days.MaxBytes {
		t.Errorf("%d bytes: %v", len(data), err)
	}
}

func zipped(text string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.Bytes()
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(someDay(rand.New(rand.NewPCG(1, 1)), 3))
	if err != nil {
		t.Fatal(err)
	}
	with := func(old, replacement string) []byte {
		changed := strings.Replace(string(text), old, replacement, 1)
		if changed == string(text) {
			t.Fatalf("%s is not in %s", old, text)
		}
		return zipped(changed)
	}
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":           {nil, "unzip"},
		"not zipped":        {text, "unzip"},
		"cut off":           {zipped(string(text))[:60], "unzip"},
		"too long":          {make([]byte, days.MaxBytes+1), "at most"},
		"a bomb":            {zipped(strings.Repeat(" ", maxText+1)), "unzipped"},
		"no JSON":           {zipped("{"), "not the record"},
		"a newer build":     {with(`"v":1`, `"v":2`), days.ErrNewer.Error()},
		"of other types":    {zipped(`{"v":2,"lines":{"a":"b"}}`), days.ErrNewer.Error()},
		"an older build":    {with(`"v":1`, `"v":0`), "format 0, this build reads 1"},
		"another day":       {with("2026-11-26", "2026-11-25"), "another day"},
		"a name":            {with(`"team-`, `"../`), "no name"},
		"a peak":            {with(`"peaks":[`, `"peaks":[9999,`), "peak that cannot be"},
		"seen":              {with(`"seen":[`, `"seen":[4096,`), "peak that cannot be"},
		"pods":              {with(`"seen"`, `"pods":-1,"seen"`), "cannot be"},
		"a negative number": {with(`"lines"`, `"leftOut":-1,"lines"`), "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := decode(tt.data, "2026-11-26"); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	text, err := json.Marshal(someDay(rand.New(rand.NewPCG(1, 1)), 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"v":1,"day":"2026-11-26","lines":[{"namespace":"a","kind":"Job","name":"b","container":"c","peaks":[1],"seen":[1]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := decode(zipped(text), "2026-11-26")
		if err != nil {
			return
		}
		data, err := united(d).encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(data, d.Date)
		if err != nil {
			t.Fatalf("what was read and written is not read: %v", err)
		}
		r := &Record{Workloads: map[workload.Container]*Workload{}, samples: newSamples}
		r.add(noon, again)
	})
}
