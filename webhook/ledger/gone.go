package ledger

import (
	"sync"
	"time"
)

// maxDeparted bounds what is remembered: some 5 MB.
const maxGonePods = 1 << 16

// Departed remembers the pods that were seen to end or to be deleted. A UID never comes back, so a reservation for one
// of them can be given back without waiting for Expiry: pods that live for a moment leave no trace in any list. It is
// safe for concurrent use; the zero Departed remembers nothing yet.
type GonePods struct {
	mu    sync.Mutex
	when  map[string]time.Time
	order []string // oldest first
}

// Left notes that the pod ended or was deleted.
func (d *GonePods) Add(podUID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.when == nil {
		d.when = make(map[string]time.Time)
	}
	if _, known := d.when[podUID]; known {
		return
	}
	now := time.Now()
	d.when[podUID], d.order = now, append(d.order, podUID)
	for len(d.order) > maxGonePods || len(d.order) > 0 && now.Sub(d.when[d.order[0]]) > 2*ReservationTTL {
		delete(d.when, d.order[0])
		d.order = d.order[1:]
	}
}

// Has says that the pod is known to have left.
func (d *GonePods) Has(podUID string) bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.when[podUID]
	return known
}
