package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/sizing"
)

// Generated histories: two weeks from which is estimated, and a week that follows, at steps of five minutes.
const (
	seeds      = 30
	step       = 300
	twoWeeks   = 14 * 24
	oneWeek    = 7 * 24
	cardMemory = 81_920 // MiB
)

// sampler is the memory in MiB at an hour since the first. Hours come in order of time.
type sampler func(hour float64) float64

// kind makes histories, each of its own random numbers. It calls start for each start of a container.
type kind struct {
	name    string
	sampler func(r *rand.Rand, start func(hour float64)) sampler
	slice   float64 // in MiB; 0: the card
}

// kinds are hard for one reason each.
var kinds = []kind{
	{"steady", steady, 0},
	{"daily season", dailySeason, 0},
	{"start-up spike", startUpSpike, 0},
	{"leak", leak, 0},
	{"slow leak", slowLeak, 0},
	{"leak with restarts", leakWithRestarts, 0},
	{"weekly batch", weeklyBatch, 0},
	{"restart loop", restartLoop, 0},
	{"two modes", twoModes, 0},
	{"preallocator", preallocator, 0},
	{"preallocator in a slice", preallocatorInSlice, 20_000},
	{"idle", idle, 0},
	{"growing", growing, 0},
	{"grows until it is warm", growingUntilWarm, 0},
	{"shrinking", shrinking, 0},
	{"new release before the cut", newRelease, 0},
	{"rare spikes of any height", rareSpikes, 0},
	{"cut off at its slice", cutOffAtSlice, 12_000},
	{"gaps", gaps, 0},
	{"short jobs of any size", shortJobs, 0},
	{"random walk", randomWalk, 0},
}

// kindResult is the result of the estimates of a kind.
type kindResult struct {
	name                         string
	histories, unsized, exceeded int
	unmarked                     int // exceeded, and nothing marked
	marks                        map[sizing.Mark]int
	ratios                       []float64
}

// backtestKinds estimates generated histories in a fleet of ordinary ones.
func backtestKinds(seeds uint64) (results []kindResult) {
	var ordinary []*sizing.Workload
	for seed := range uint64(60) {
		h := kinds[seed%2].history(seed, 0, twoWeeks+oneWeek)
		ordinary = append(ordinary, &sizing.Workload{Memory: h, Device: cardMemory})
	}
	fleet := sizing.NewFleet(ordinary, stated/100.0, oneWeek)
	for _, k := range kinds {
		result := kindResult{name: k.name, marks: map[sizing.Mark]int{}}
		for seed := range seeds {
			result.add(fleet, k, seed+1000)
		}
		results = append(results, result)
	}
	return results
}

// add estimates a history from all its hours before the cut, and from its first three days.
func (k *kindResult) add(fleet *sizing.Fleet, of kind, seed uint64) {
	for _, began := range []float64{0, twoWeeks - 72} {
		k.histories++
		before := &sizing.Workload{Memory: of.history(seed, began, twoWeeks), Slice: of.slice, Device: cardMemory}
		later := of.history(seed, twoWeeks, twoWeeks+oneWeek).Peak()
		e := fleet.Estimate(before)
		for _, m := range e.Marks {
			k.marks[m]++
		}
		if e.Size == 0 {
			k.unsized++
			continue
		}
		k.ratios = append(k.ratios, e.Size/max(later, e.Peak))
		if later > e.Size {
			k.exceeded++
			if len(e.Marks) == 0 {
				k.unmarked++
			}
		}
	}
}

// marksText are the marks of a kind's histories, by number.
func (k *kindResult) marksText() string {
	var texts []string
	for mark, n := range k.marks {
		texts = append(texts, fmt.Sprintf("%s %d", mark, n))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// history is that of a seed between two hours: the same seed gives the same samples.
func (k kind) history(seed uint64, from, until float64) *sizing.History {
	h := &sizing.History{}
	in := func(hour float64) bool { return hour >= from && hour < until }
	sample := k.sampler(rand.New(rand.NewPCG(seed, seed)), func(hour float64) {
		if in(hour) {
			h.Start(hour * 3600)
		}
	})
	for at := 0; at < int(until*3600); at += step {
		hour := float64(at) / 3600
		if mib := sample(hour); in(hour) {
			h.Add(float64(at), mib)
		}
	}
	return h
}
