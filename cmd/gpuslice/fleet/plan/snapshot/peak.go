package snapshot

import (
	"cmp"
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
)

// Values of --peak: the moment at which the pods that are there request most GPUs, or the one above which 5 % of the
// time lie. Min is the moment at which they request fewest.
const (
	Max = "max"
	P95 = "p95"
	Min = "min"
)

// change is a moment at which pods come or go.
type change struct {
	at     time.Time
	amount float64
}

// peak are the pods of the moment that counts. Pods whose times are not known are there if they have not ended.
func peak(f *inventory.Fleet, which string) (alive []*inventory.Pod) {
	at := moment(f, which)
	for i := range f.Pods {
		if p := &f.Pods[i]; there(p, at, f.Taken) {
			alive = append(alive, p)
		}
	}
	return alive
}

func there(p *inventory.Pod, at, taken time.Time) bool {
	if p.Over() && p.Ended.IsZero() {
		return false
	}
	if !at.Before(taken) {
		return !p.Over()
	}
	return !p.Created.After(at) && (p.Ended.IsZero() || p.Ended.After(at))
}

// moment is when the pods request as many GPUs as the peak has, the last such moment.
func moment(f *inventory.Fleet, which string) time.Time {
	var changes []change
	for i := range f.Pods {
		p := &f.Pods[i]
		if p.Over() && p.Ended.IsZero() || p.Created.After(f.Taken) {
			continue
		}
		amount := weight(f, p)
		changes = append(changes, change{p.Created, amount})
		if p.Over() {
			changes = append(changes, change{p.Ended, -amount})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	var steps []step
	sum := 0.0
	for i, c := range changes {
		sum += c.amount
		until := f.Taken
		if i+1 < len(changes) {
			until = changes[i+1].at
		}
		if c.at.IsZero() || !until.After(c.at) && i+1 < len(changes) {
			continue
		}
		steps = append(steps, step{c.at, sum, until.Sub(c.at)})
	}
	return choose(steps, which, f.Taken)
}

// step is a time over which the pods' requests stay the same.
type step struct {
	at     time.Time
	sum    float64
	length time.Duration
}

func choose(steps []step, which string, taken time.Time) time.Time {
	if len(steps) == 0 {
		return taken
	}
	last := steps[len(steps)-1]
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(b.sum, a.sum), b.at.Compare(a.at)) })
	chosen := steps[0]
	if which == Min {
		if chosen = steps[len(steps)-1]; chosen.sum >= last.sum {
			return taken
		}
		return chosen.at
	}
	if which == P95 {
		var all, above time.Duration
		for _, s := range steps {
			all += s.length
		}
		for _, s := range steps {
			if chosen = s; above+s.length > all/20 {
				break
			}
			above += s.length
		}
	}
	if chosen.at.Equal(last.at) || chosen.sum <= last.sum {
		return taken // the present demand is as high
	}
	return chosen.at
}

// weight is about how many GPUs a pod requests.
func weight(f *inventory.Fleet, p *inventory.Pod) (n float64) {
	for name, count := range p.Requests {
		if f.IsGPU(name) {
			n += float64(count)
		}
	}
	return n
}
