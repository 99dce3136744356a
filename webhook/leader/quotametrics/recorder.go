package quotametrics

import (
	"maps"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// recorder keeps the last report of each budget, and each namespace's charge since start.
type recorder struct {
	mu         sync.Mutex
	recording  bool
	states     map[string]ledger.State // by the budget's key
	namespaces map[string]namespaceCharge
}

// namespaceCharge is the charge of a namespace's pods.
type namespaceCharge struct {
	charge      quota.Charge
	unmanaged   int
	since       time.Time // charge has applied since then
	byteSeconds float64   // up to since
}

// byteSecondsAt returns the memory charged until now, in bytes times seconds.
func (n namespaceCharge) byteSecondsAt(now time.Time) float64 {
	return n.byteSeconds + float64(n.charge.Memory.Bytes())*max(now.Sub(n.since), 0).Seconds()
}

// reset starts or stops recording.
func (r *recorder) reset(recording bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording, r.states, r.namespaces = recording, map[string]ledger.State{}, map[string]namespaceCharge{}
}

// record keeps a report. It reports whether the recorder is started.
func (r *recorder) record(report ledger.Report, now time.Time) bool {
	charges, unmanaged := map[string]quota.Charge{}, map[string]int{}
	for _, h := range report.State.Base {
		charges[h.Namespace] = charges[h.Namespace].Plus(h.Charge)
	}
	for _, p := range report.Unmanaged {
		unmanaged[p.Holding.Namespace]++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.recording {
		return false
	}
	r.states[report.Budget.Key] = report.State
	for _, name := range report.State.Namespaces {
		next := namespaceCharge{charge: charges[name], unmanaged: unmanaged[name], since: now}
		if last, ok := r.namespaces[name]; ok {
			next.byteSeconds = last.byteSecondsAt(now)
		}
		r.namespaces[name] = next
	}
	return true
}

// prune drops all budgets and namespaces but these. A namespace that moved from one budget into another stays.
func (r *recorder) prune(budgets []ledger.Budget) {
	keys, names := map[string]bool{}, map[string]bool{}
	for _, budget := range budgets {
		keys[budget.Key] = true
		for _, name := range budget.Namespaces {
			names[name] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.states, func(key string, _ ledger.State) bool { return !keys[key] })
	maps.DeleteFunc(r.namespaces, func(name string, _ namespaceCharge) bool { return !names[name] })
}

// read returns copies of the records; a State is never changed once it is reported.
func (r *recorder) read() (states map[string]ledger.State, namespaces map[string]namespaceCharge) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.states), maps.Clone(r.namespaces)
}
