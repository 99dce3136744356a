// Package snapshot makes the input of a plan from a snapshot of a cluster.
//
//	nodes -> kinds, by what they have and what pods' constraints make of them (nodes.go)
//	pods at the peak (peak.go) -> what they need (pods.go)
package snapshot

import (
	"fmt"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
)

// Values of --sizes: the pods' needs are their requests, the recommendations for them, or their observed use.
const (
	Requested   = "requested"
	Recommended = "recommended"
	Observed    = "observed"
)

// Options are how to read a snapshot.
type Options struct {
	Sizes string
	Peak  string // Max or P95
	// Recommend is the size that a history of samples has for a pod, in MiB, for Recommended. 0: the history gives none. It reports false
	// for a pod without samples. nil: there are no samples.
	Recommend func(*inventory.Pod) (mib int64, sampled bool)
}

// Read makes a fleet of a snapshot, and notes on omissions of the plan.
func Read(from *inventory.Fleet, o Options) (*demand.Fleet, []string) {
	r := &reader{from: from, options: o, out: &demand.Fleet{Units: map[string]int64{}, Models: map[string]string{}},
		pools: map[string]*inventory.Pool{}, nodes: map[string]int{},
		allowed: map[string][]bool{}, counts: map[string]int{}, unknown: map[string]bool{}}
	for i := range from.Pools {
		r.pools[from.Pools[i].Name] = &from.Pools[i]
	}
	alive := peak(from, o.Peak)
	r.readNodes(alive)
	for _, p := range alive {
		r.readPod(p)
	}
	for i := range from.Pods {
		p := &from.Pods[i]
		if node, known := r.nodes[p.Node]; known && !p.Over() {
			r.out.Nodes[node].Running++
		}
	}
	return r.out, r.notes()
}

type reader struct {
	from    *inventory.Fleet
	options Options
	out     *demand.Fleet
	pools   map[string]*inventory.Pool
	nodes   map[string]int    // index of out.Nodes by name
	allowed map[string][]bool // by constraint and model, shared between pods
	counts  map[string]int    // of notes
	unknown map[string]bool   // nodes with an unknown number of devices
}

// Notes, with their meaning for the plan.
const (
	noteNodes   = "%d nodes are cordoned or not ready: they are left out, and their pods are placed elsewhere"
	noteSpread  = "%d pods have topology spread constraints or affinity to other pods, which the plan ignores"
	noteClaims  = "%d pods have ResourceClaims of their own, which the plan does not count"
	noteUsage   = "%d pods that need GPUs have no measured use: they are counted by what they request"
	noteTable   = "%d pods have the size of a built-in table for their peak since they started: --samples reads histories, which give better sizes"
	noteSize    = "%d pods that need one GPU or less have no recommended size: they are counted by what they request"
	noteSeveral = "%d pods have several slices: they are counted as one, in memory of one GPU"
	noteUnknown = "%d nodes have an unknown number of GPUs, and are left out"
	// noteOnUnknown is of pods that would look as if they waited.
	noteOnUnknown = "%d pods run on nodes with an unknown number of GPUs, and are left out"
)

func (r *reader) notes() (notes []string) {
	for _, text := range []string{noteNodes, noteUnknown, noteOnUnknown, noteSpread, noteClaims, noteSeveral, noteUsage, noteTable, noteSize} {
		if n := r.counts[text]; n > 0 {
			notes = append(notes, fmt.Sprintf(text, n))
		}
	}
	notes = append(notes, r.from.Notes...)
	for _, unread := range r.from.Unread {
		notes = append(notes, "the snapshot lacks: "+strings.TrimSpace(unread))
	}
	return notes
}
