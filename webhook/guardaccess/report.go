package guardaccess

import (
	"maps"
	"slices"
	"time"
)

// Outcome is the result of a guard.
type Outcome string

// The outcomes.
const (
	Reads   Outcome = "reads"   // it reads the GPUs
	Fails   Outcome = "fails"   // it reported that it cannot enforce its pod's slice
	Resumed Outcome = "resumed" // and later that it can again, which anybody may have written
)

// Report is about one guard that runs.
type Report struct {
	Pool, Access, Namespace string
	Started                 time.Time
	Outcome                 Outcome
	Reason                  string
}

// Update returns f after the reports of all guards that run. The same reports again change nothing.
func (f Failures) Update(reports []Report, now time.Time) Failures {
	byPlace := map[place]map[string]Guards{}
	for _, one := range f.Current(now) {
		byPlace[place{one.Pool, one.Access}] = one.Namespaces
	}
	for _, r := range reports {
		if r.Outcome == Resumed {
			delete(byPlace[r.place()], r.Namespace)
		}
	}
	for _, r := range reports {
		if r.Outcome == Fails && !over(r.Started, now) {
			r.addTo(byPlace)
		}
	}
	for _, r := range reports {
		if r.Outcome == Reads {
			delete(byPlace, r.place())
		}
	}
	var out Failures
	for at, namespaces := range byPlace {
		out = append(out, Failure{Pool: at.pool, Access: at.access, Namespaces: namespaces})
	}
	return out.bounded()
}

func (r Report) place() place { return place{r.Pool, r.Access} }

// addTo adds a guard that fails.
func (r Report) addTo(byPlace map[place]map[string]Guards) {
	at := r.place()
	if byPlace[at] == nil {
		byPlace[at] = map[string]Guards{}
	}
	started := r.Started.UTC().Truncate(time.Second)
	g, known := byPlace[at][r.Namespace]
	if !known || started.Before(g.First) {
		g.First = started
	}
	if !known || !started.Before(g.Last) {
		g.Last, g.Reason = started, r.Reason
	}
	byPlace[at][r.Namespace] = g
}

// Equal reports whether two are the same.
func (f Failures) Equal(other Failures) bool {
	return slices.EqualFunc(f, other, func(a, b Failure) bool {
		return a.Pool == b.Pool && a.Access == b.Access && maps.EqualFunc(a.Namespaces, b.Namespaces, Guards.equal)
	})
}

func (g Guards) equal(other Guards) bool {
	return g.First.Equal(other.First) && g.Last.Equal(other.Last) && g.Reason == other.Reason
}
