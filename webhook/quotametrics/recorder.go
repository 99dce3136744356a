package quotametrics

import (
	"maps"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// book is what was last reported of each budget, and what each namespace has come to hold since the book was opened.
type recorder struct {
	mu         sync.Mutex
	recording  bool
	states     map[string]ledger.State // by the budget's key
	namespaces map[string]namespaceCharge
}

// account is what a namespace holds.
type namespaceCharge struct {
	charge      policies.Charge
	unmanaged   int
	since       time.Time // held is so from then on
	byteSeconds float64   // until then
}

// spent is the memory held until now, in bytes times seconds.
func (a namespaceCharge) byteSecondsAt(now time.Time) float64 {
	return a.byteSeconds + float64(a.charge.Memory.Bytes())*max(now.Sub(a.since), 0).Seconds()
}

func (b *recorder) start() { b.reset(true) }
func (b *recorder) stop()  { b.reset(false) }

func (b *recorder) reset(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recording, b.states, b.namespaces = on, map[string]ledger.State{}, map[string]namespaceCharge{}
}

// note takes a report. It is false where the book is closed.
func (b *recorder) record(r ledger.Report, now time.Time) bool {
	held, unpromised := map[string]policies.Charge{}, map[string]int{}
	for _, h := range r.State.Base {
		held[h.Namespace] = held[h.Namespace].Plus(h.Charge)
	}
	for _, p := range r.Unmanaged {
		unpromised[p.Holding.Namespace]++
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.recording {
		return false
	}
	b.states[r.Budget.Key] = r.State
	for _, name := range r.State.Namespaces {
		was, known := b.namespaces[name]
		is := namespaceCharge{charge: held[name], unmanaged: unpromised[name], since: now}
		if known {
			is.byteSeconds = was.byteSecondsAt(now)
		}
		b.namespaces[name] = is
	}
	return true
}

// prune forgets budgets and namespaces that are not among these. A namespace that went from one budget into another
// stays.
func (b *recorder) prune(budgets []ledger.Budget) {
	keys, names := map[string]bool{}, map[string]bool{}
	for _, budget := range budgets {
		keys[budget.Key] = true
		for _, name := range budget.Namespaces {
			names[name] = true
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.states, func(key string, _ ledger.State) bool { return !keys[key] })
	maps.DeleteFunc(b.namespaces, func(name string, _ namespaceCharge) bool { return !names[name] })
}

// read returns copies of what is noted; States are never changed once they are reported.
func (b *recorder) read() (states map[string]ledger.State, namespaces map[string]namespaceCharge) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.states), maps.Clone(b.namespaces)
}
