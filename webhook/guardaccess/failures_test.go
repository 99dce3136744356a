package guardaccess

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// report is one about the pool "l4", by a guard that started so many minutes after noon.
func report(outcome Outcome, namespace string, minute int) Report {
	return Report{Pool: "l4", Access: "env", Namespace: namespace,
		Started: noon.Add(time.Duration(minute) * time.Minute), Outcome: outcome, Reason: "no NVML"}
}

// whom are those of the namespaces a, b and c whose pods are planned without a guard.
func whom(f Failures) string {
	var out []string
	for _, namespace := range []string{"a", "b", "c"} {
		if f.Reasons("l4", namespace)["env"] != "" {
			out = append(out, namespace)
		}
	}
	return strings.Join(out, " ")
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	fails := func(namespace string, minute int) Report { return report(Fails, namespace, minute) }
	reads := func(namespace string, minute int) Report { return report(Reads, namespace, minute) }
	resumed := func(namespace string, minute int) Report { return report(Resumed, namespace, minute) }
	elsewhere := func(r Report, pool, access string) Report { r.Pool, r.Access = pool, access; return r }
	for _, tt := range []struct {
		name   string
		rounds [][]Report // what the guards that run report, one round a minute
		want   string
	}{
		{"nobody reports", [][]Report{{}}, ""},
		{"one guard fails", [][]Report{{fails("a", 0)}}, ""},
		{"one guard fails, and fails again", [][]Report{{fails("a", 0)}, {fails("a", 0)}}, ""},
		{"two guards of one namespace fail", [][]Report{{fails("a", 0), fails("a", 1)}}, "a"},
		{"two guards of one namespace fail in turn", [][]Report{{fails("a", 0)}, {}, {fails("a", 2)}}, "a"},
		{"guards of two namespaces fail", [][]Report{{fails("a", 0), fails("b", 0)}}, "a b c"},
		{"guards of two namespaces fail in turn", [][]Report{{fails("a", 0)}, {}, {fails("b", 2)}, {}}, "a b c"},
		{"one guard reads, beside those that fail", [][]Report{{fails("a", 0), fails("b", 0), reads("c", 0)}}, ""},
		{"one guard reads later", [][]Report{{fails("a", 0), fails("b", 0)}, {}, {reads("a", 2)}}, ""},
		{"guards fail after one that read", [][]Report{{reads("c", 0)}, {}, {fails("a", 2), fails("b", 2)}}, "a b c"},
		{"one guard resumes", [][]Report{{fails("a", 0), fails("b", 0)}, {resumed("a", 0), fails("b", 0)}}, ""},
		{"one guard resumes, and its namespace has another that fails",
			[][]Report{{fails("a", 0), fails("a", 1), fails("b", 0)}, {resumed("a", 0), fails("a", 1), fails("b", 0)}}, "a b c"},
		{"a guard that resumes counts for its own namespace", [][]Report{{fails("a", 0), fails("b", 0)}, {resumed("c", 0)}}, "a b c"},
		{"guards on two pools fail", [][]Report{{fails("a", 0), elsewhere(fails("b", 0), "h100", "env")}}, ""},
		{"guards that reach the driver in two ways fail", [][]Report{{fails("a", 0), elsewhere(fails("b", 0), "l4", "volume")}}, ""},
		{"a guard reads in another way", [][]Report{{fails("a", 0), fails("b", 0), elsewhere(reads("c", 0), "l4", "volume")}}, "a b c"},
		{"a guard reads on another pool", [][]Report{{fails("a", 0), fails("b", 0), elsewhere(reads("c", 0), "h100", "env")}}, "a b c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var f Failures
			for minute, reports := range tt.rounds {
				now := noon.Add(time.Duration(minute) * time.Minute)
				f = f.Update(reports, now)
				if again := f.Update(reports, now); !again.Equal(f) {
					t.Errorf("the same reports change %+v to %+v", f, again)
				}
				if read := Decode(f.Encode()); !read.Equal(f) {
					t.Errorf("%+v is read as %+v", f, read)
				}
			}
			if got := whom(f); got != tt.want {
				t.Errorf("planned without a guard: %q, want %q (%+v)", got, tt.want, f)
			}
		})
	}
	t.Run("guards that started long ago do not count", func(t *testing.T) {
		t.Parallel()
		running := []Report{fails("a", 0), fails("b", 0)}
		f := Failures{}.Update(running, noon)
		if got := whom(f.Update(running, noon.Add(KeepFor-time.Second))); got != "a b c" {
			t.Errorf("within the time: %q", got)
		}
		if got := f.Update(running, noon.Add(KeepFor)); len(got) > 0 || len(f.Current(noon.Add(KeepFor))) > 0 {
			t.Errorf("after it: %+v", got)
		}
	})
	t.Run("guards of the future do not count for ever", func(t *testing.T) {
		t.Parallel()
		if got := (Failures{}).Update([]Report{report(Fails, "a", int(KeepFor.Minutes()))}, noon); len(got) > 0 {
			t.Errorf("kept %+v", got)
		}
	})
}

// lies are what the guards of a namespace report that may report whatever it likes.
func lies(random *rand.Rand, namespace string, minute int) (out []Report) {
	outcomes := []Outcome{Reads, Fails, Fails, Fails, Resumed}
	for range random.IntN(4) {
		r := report(outcomes[random.IntN(len(outcomes))], namespace, minute-random.IntN(40))
		r.Pool = []string{"l4", "l4", "h100"}[random.IntN(3)]
		out = append(out, r)
	}
	return out
}

func TestUpdateProperties(t *testing.T) {
	t.Parallel()
	t.Run("one namespace never takes the guard from another", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(400) {
			random := rand.New(rand.NewPCG(seed, 1))
			var f Failures
			took := false
			for minute := range 60 {
				now := noon.Add(time.Duration(minute) * time.Minute)
				reports := lies(random, "a", minute)
				if random.IntN(4) == 0 { // others run guards that read, or that nothing is known of
					reports = append(reports, report(Reads, "b", minute))
				}
				f = f.Update(reports, now)
				took = took || whom(f) == "a"
				if got := whom(f); got != "" && got != "a" {
					t.Fatalf("seed %d, minute %d: %q is planned without a guard: %+v", seed, minute, got, f)
				}
			}
			if seed == 0 && !took {
				t.Error("its own guard was never taken from it: the property holds for want of attempts")
			}
		}
	})
	t.Run("a guard that reads ends it for everybody", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(400) {
			random := rand.New(rand.NewPCG(seed, 2))
			var f Failures
			for minute := range 30 {
				reports := append(lies(random, "a", minute), lies(random, "b", minute)...)
				f = f.Update(reports, noon.Add(time.Duration(minute)*time.Minute))
			}
			f = f.Update(append(lies(random, "a", 30), report(Reads, "c", 0)), noon.Add(30*time.Minute))
			if got := whom(f); got != "" {
				t.Fatalf("seed %d: %q is planned without a guard: %+v", seed, got, f)
			}
		}
	})
	t.Run("however much is reported, what is kept is bounded", func(t *testing.T) {
		t.Parallel()
		var reports []Report
		for pool := range 3 * maxFailures {
			for namespace := range 3 * maxNamespaces {
				r := report(Fails, fmt.Sprintf("%s-%d", strings.Repeat("n", 58), namespace), pool)
				r.Pool, r.Access, r.Reason = fmt.Sprint(strings.Repeat("p", 100), pool), strings.Repeat("x", 280), strings.Repeat("<", 5000)
				reports = append(reports, r)
			}
		}
		f := Failures{}.Update(reports, noon.Add(5*time.Hour))
		if text := f.Encode(); len(f) != maxFailures || len(f[0].Namespaces) != maxNamespaces || !Decode(text).Equal(f) {
			t.Errorf("kept %d failures, %d bytes, read again: %d", len(f), len(text), len(Decode(text)))
		}
	})
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "[{", "another type": `{"pool":"l4"}`, "no namespaces": `[{"pool":"l4","access":"env"}]`,
		"too long": `[{"pool":"l4","namespaces":{"a":{"reason":"` + strings.Repeat("x", maxText) + `"}}}]`,
	} {
		if f := Decode(text); len(f) > 0 || f.Encode() != "" {
			t.Errorf("%s: read %+v", name, f)
		}
	}
	long := Decode(`[{"pool":"l4","access":"env","namespaces":{"a":{"reason":"` + strings.Repeat("x", 999) + `"}}}]`)
	if len(long) != 1 || len(long[0].Namespaces["a"].Reason) != maxReason {
		t.Errorf("read %+v", long)
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	f := Failures{}.Update([]Report{report(Fails, "a", 0), report(Fails, "b", 0)}, noon)
	reason := f.Reasons("l4", "c")["env"]
	if !strings.Contains(reason, "2 namespaces") || strings.Contains(reason, "no NVML") {
		t.Errorf("the reason is %q: it names how many, and quotes no tenant", reason)
	}
	before := slices.Collect(maps.Keys(f[0].Namespaces))
	f.Update([]Report{report(Reads, "a", 1)}, noon)
	if len(before) != len(f[0].Namespaces) {
		t.Error("Update changes what it is given")
	}
}
