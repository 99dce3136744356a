package ledger

import (
	"sync"
	"time"
)

// maxGonePods bounds the pods that are remembered, to some 5 MB.
const maxGonePods = 1 << 16

// GonePods remembers the pods that were seen to end or to be deleted. A UID never comes back, so that the reservation of such
// a pod can be dropped before ReservationTTL: a pod that lives for a moment may be in no list. It is safe for concurrent
// use; the zero value is empty, and nil stays empty.
type GonePods struct {
	mu    sync.Mutex
	when  map[string]time.Time
	order []string // oldest first
}

// Add records that the pod ended or was deleted.
func (g *GonePods) Add(podUID string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.when == nil {
		g.when = make(map[string]time.Time)
	}
	if _, known := g.when[podUID]; known {
		return
	}
	now := time.Now()
	g.when[podUID], g.order = now, append(g.order, podUID)
	for len(g.order) > maxGonePods || len(g.order) > 0 && now.Sub(g.when[g.order[0]]) > 2*ReservationTTL {
		delete(g.when, g.order[0])
		g.order = g.order[1:]
	}
}

// Has reports whether the pod was added.
func (g *GonePods) Has(podUID string) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	_, known := g.when[podUID]
	return known
}
