package advice

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/sizing"
)

var written = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// some are recommendations of any kind.
func some(r *rand.Rand, n int) (all []Recommendation) {
	for i := range n {
		all = append(all, Recommendation{
			Container: Container{fmt.Sprint("team-", r.IntN(40)), Owner{"Deployment", fmt.Sprint("web-", i)}, "main"},
			Sizes:     [len(Coverages)]api.MiB{api.MiB(r.IntN(9000)), api.MiB(r.IntN(9000)), 0},
			Verdict:   verdicts[r.IntN(len(verdicts))], Since: written.Add(-time.Duration(r.IntN(1000)) * time.Hour), Hours: float64(r.IntN(2400)),
			Slice: api.MiB(r.IntN(80_000)),
		})
	}
	return all
}

// longest are recommendations that take as many bytes as one can.
func longest(n int) (all []Recommendation) {
	label := strings.Repeat("n", 63)
	for i := range n {
		all = append(all, Recommendation{
			Container: Container{label[:57] + fmt.Sprintf("%06d", i%1000),
				Owner{strings.Repeat("K", 63), fmt.Sprintf("%06d.", i) + strings.Repeat("m", 246)}, label},
			Sizes:   [len(Coverages)]api.MiB{maxMiB, maxMiB, maxMiB},
			Verdict: sizing.TakesWhatIsGiven, Since: written, Hours: maxHours, Slice: maxMiB,
		})
	}
	return all
}

func encode(t *testing.T, at time.Time, all []Recommendation) []string {
	t.Helper()
	texts, _, err := Encode(at, all)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 100, 9000} {
		all := some(rand.New(rand.NewPCG(1, uint64(n))), n)
		texts := encode(t, written, all)
		rand.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
		book, err := Decode(texts)
		if err != nil || !book.Written.Equal(written) {
			t.Fatalf("%d: read of %s: %v", n, book.Written, err)
		}
		var got []Recommendation
		for r := range book.All {
			if same := book.Of(r.Namespace)[r.Container]; same != r {
				t.Fatalf("%v is not what its namespace has: %v", r, same)
			}
			got = append(got, *r)
		}
		byName := func(a, b Recommendation) int { return a.Compare(b.Container) }
		slices.SortFunc(all, byName)
		slices.SortFunc(got, byName)
		if diff := cmp.Diff(all, got); diff != "" {
			t.Fatalf("%d (-written +read):\n%s", n, diff)
		}
	}
}

// TestBounds writes more than there is room for: each namespace keeps its part, and the texts fit into ConfigMaps.
func TestBounds(t *testing.T) {
	t.Parallel()
	all := longest(maxContainers + 500)
	all = append(all, Recommendation{Container: Container{"small", Owner{"Job", "train"}, "main"}, Verdict: sizing.Right},
		Recommendation{Container: Container{"small", Owner{"Job", "../train"}, "main"}, Verdict: sizing.Right})
	for i := range 3000 {
		all = append(all, Recommendation{Container: Container{"flood", Owner{"Job", fmt.Sprint("train-", i)}, "main"}, Verdict: sizing.Right})
	}
	texts, leftOut, err := Encode(written, all)
	if err != nil || leftOut != 500+1+1+3000 || len(texts) > MaxParts {
		t.Fatalf("%d texts, %d left out: %v", len(texts), leftOut, err)
	}
	for i, text := range texts {
		if len(text) > maxText {
			t.Errorf("text %d has %d bytes", i, len(text))
		}
	}
	book, err := Decode(texts)
	if err != nil || len(book.Of("small")) != 1 || len(book.Of("flood")) == 0 || len(book.Of("flood")) > 20 {
		t.Errorf("%d of small, %d of flood: %v", len(book.Of("small")), len(book.Of("flood")), err)
	}
}

// TestTimes mixes texts of two times: the latest that are complete count.
func TestTimes(t *testing.T) {
	t.Parallel()
	before, after := encode(t, written, longest(5000)), encode(t, written.Add(time.Hour), longest(5001))
	if len(before) < 2 || len(after) != len(before) {
		t.Fatalf("%d and %d texts", len(before), len(after))
	}
	unsound := append([]string{strings.Replace(before[0], "16777216", "-1", 1)}, before[1:]...)
	for _, tt := range []struct {
		name  string
		texts []string
		want  time.Time
		error string
	}{
		{"none", nil, time.Time{}, ""},
		{"one time", before, written, ""},
		{"both", append(slices.Clone(before), after...), written.Add(time.Hour), ""},
		{"the later incomplete", append(slices.Clone(before), after[1:]...), written, ""},
		{"half written", append(slices.Clone(after[:1]), before[1:]...), time.Time{}, "missing"},
		{"one unreadable", append([]string{"{"}, before...), written, ""},
		{"all unreadable", []string{"{", "[]"}, time.Time{}, "not a document"},
		{"of a newer build", []string{`{"v":2,"items":{"a":"b"}}`}, time.Time{}, errNewer.Error()},
		{"of an older build", []string{`{"v":0}`}, time.Time{}, "version 0"},
		{"too many", slices.Repeat(before[:1], 2*MaxParts+1), time.Time{}, "at most"},
		{"too long", []string{strings.Repeat(" ", maxText+1)}, time.Time{}, "at most"},
		{"other coverages", []string{strings.Replace(before[0], "[90,", "[91,", 1)}, time.Time{}, "91"},
		{"a part that cannot be", []string{strings.Replace(before[0], `"part":0`, `"part":9`, 1)}, time.Time{}, "part 9"},
		{"a size that cannot be", unsound, time.Time{}, "no memory of a GPU"},
		{"a size that cannot be, and the later incomplete", slices.Concat(unsound, after[1:]), time.Time{}, "no memory of a GPU"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			book, err := Decode(tt.texts)
			switch {
			case tt.error != "":
				if err == nil || !strings.Contains(err.Error(), tt.error) || book != nil {
					t.Errorf("error %v, want %q", err, tt.error)
				}
			case err != nil:
				t.Error(err)
			case tt.want.IsZero() != (book == nil), book != nil && !book.Written.Equal(tt.want):
				t.Errorf("read %v, want that of %s", book, tt.want)
			}
		})
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[sizing.Verdict]string{
		sizing.OverRequested: "", sizing.Right: "", sizing.AtRisk: "", sizing.NoSlice: "",
		sizing.NotEnoughHistory: "not enough history", sizing.TakesWhatIsGiven: "takes what it is given",
		sizing.Idle: "idle", sizing.Unknown: "unknown",
	} {
		r := Recommendation{Sizes: [len(Coverages)]api.MiB{10, 20, 0}, Verdict: verdict}
		for coverage, size := range map[int]api.MiB{90: 10, 95: 20, 99: 0, 50: 0} {
			got, why := r.Size(coverage)
			switch {
			case want != "" && (got != 0 || !strings.Contains(why, want)),
				want == "" && got != size, (got == 0) != (why != ""):
				t.Errorf("%s at %d%%: %d, %q", verdict, coverage, got, why)
			}
		}
	}
}

func TestOwnerOf(t *testing.T) {
	t.Parallel()
	owned := func(kind, name string, labels ...string) *metav1.ObjectMeta {
		m := &metav1.ObjectMeta{Name: "pod",
			OwnerReferences: []metav1.OwnerReference{{Kind: "Node", Name: "n"}, {Kind: kind, Name: name, Controller: new(true)}}}
		if len(labels) > 0 {
			m.Labels = map[string]string{"pod-template-hash": labels[0]}
		}
		return m
	}
	for name, tt := range map[string]struct {
		pod  *metav1.ObjectMeta
		want Owner
	}{
		"of a Deployment":          {owned("ReplicaSet", "web-5d9c", "5d9c"), Owner{"Deployment", "web"}},
		"of a ReplicaSet":          {owned("ReplicaSet", "web-5d9c"), Owner{"ReplicaSet", "web-5d9c"}},
		"of a ReplicaSet by hand":  {owned("ReplicaSet", "web", "5d9c"), Owner{"ReplicaSet", "web"}},
		"of a CronJob":             {owned("Job", "nightly-29401020"), Owner{"CronJob", "nightly"}},
		"of a Job":                 {owned("Job", "train"), Owner{"Job", "train"}},
		"of a StatefulSet":         {owned("StatefulSet", "db", "5d9c"), Owner{"StatefulSet", "db"}},
		"of a custom resource":     {owned("RayCluster", "ray"), Owner{"RayCluster", "ray"}},
		"without owner":            {&metav1.ObjectMeta{Name: "train"}, Owner{"Pod", "train"}},
		"with a generated name":    {&metav1.ObjectMeta{Name: "train-x7k2p", GenerateName: "train-"}, Owner{"Pod", "train"}},
		"not named yet":            {&metav1.ObjectMeta{GenerateName: "train-"}, Owner{"Pod", "train"}},
		"no name":                  {&metav1.ObjectMeta{}, Owner{}},
		"an owner that cannot be":  {owned("Deployment", "../web"), Owner{}},
		"a kind that cannot be":    {owned("Deploy\nment", "web"), Owner{}},
		"a name that is too long":  {owned("Job", strings.Repeat("a", 300)), Owner{}},
		"a kind that is too long":  {owned(strings.Repeat("A", 300), "web"), Owner{}},
		"a hash and nothing else":  {owned("ReplicaSet", "-5d9c", "5d9c"), Owner{}},
		"minutes and nothing else": {owned("Job", "-29401020"), Owner{}},
	} {
		if got := OwnerOf(tt.pod); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	texts, _, err := Encode(written, some(rand.New(rand.NewPCG(1, 1)), 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(texts[0], "")
	f.Add(`{"v":1,"written":"2026-11-26T12:00:00Z","parts":2,"part":0,"coverages":[90,95,99],"items":[]}`,
		`{"v":1,"written":"2026-11-26T12:00:00Z","parts":2,"part":1,"coverages":[90,95,99],"items":[{}]}`)
	f.Add(`{"v":2}`, `{"v":1,"parts":8,"part":8}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		book, err := Decode([]string{a, b})
		if (book == nil) != (err != nil) {
			t.Fatalf("read %v and %v", book, err)
		}
		if err != nil {
			return
		}
		var all []Recommendation
		for r := range book.All {
			all = append(all, *r)
		}
		again, leftOut, err := Encode(book.Written, all)
		if err != nil || leftOut > 0 {
			t.Fatalf("what was read is not written: %d, %v", leftOut, err)
		}
		if _, err := Decode(again); err != nil {
			t.Fatalf("what was read and written is not read: %v", err)
		}
	})
}
