package model

import (
	"strconv"
	"time"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// Limit is how many slices the quota allows.
const Limit = 1

// quota is the limit as the ledger knows it.
func quota() policies.Quota {
	limit := int64(Limit)
	return policies.Quota{Limits: []policies.QuotaLimit{{Name: "team-a", Limits: policies.QuotaLimits{Slices: &limit}}}}
}

// Times for the ledger's own code: it looks at ages only.
func asked() time.Time { return time.Unix(1_000_000, 0) }

func reservedAt(old bool) time.Time {
	if old {
		return asked().Add(-2 * ledger.Expiry)
	}
	return asked()
}

func holding() policies.Holding {
	return policies.Holding{Namespace: "team-a", Charge: policies.Charge{Slices: 1}}
}

func reservation(pod int, old bool) ledger.Reservation {
	return ledger.Reservation{PodUID: strconv.Itoa(pod), Name: Name(pod), At: reservedAt(old), Holding: holding()}
}

// state is the stored ledger as the ledger's own code sees it, where these of the reservations have expired.
func (l Ledger) state(old set) ledger.State {
	var s ledger.State
	if l.Listed {
		s.Listed = []string{"team-a"}
	}
	if l.Base > 0 {
		s.Base = []policies.Holding{{Namespace: "team-a", Charge: policies.Charge{Slices: int64(l.Base)}}}
	}
	for pod := range Pods {
		if l.Reserved.has(pod) {
			s.Reservations = append(s.Reservations, reservation(pod, old.has(pod)))
		}
	}
	return s
}

// stored is the reverse of state.
func stored(s ledger.State) Ledger {
	l := Ledger{Listed: s.Covers([]string{"team-a"})}
	for _, h := range s.Base {
		l.Base += uint8(h.Charge.Slices)
	}
	for _, r := range s.Reservations {
		pod, err := strconv.Atoi(r.PodUID)
		if err != nil {
			panic("reservation for " + r.PodUID + ", which is no pod of the model")
		}
		l.Reserved = l.Reserved.with(pod)
	}
	return l
}

// reserve decides a request on what the ledger says: the ledger to be written, and whether the answer is yes.
func (l Ledger) reserve(pod int) (next Ledger, ok bool) {
	t := ledger.NewTally(l.state(0))
	mine := reservation(pod, false)
	switch {
	case t.Has(mine):
		return l, true
	case len(t.Excess(quota(), mine)) > 0:
		return l, false
	}
	t.Reserve(mine)
	return stored(t.State()), true
}

// reconciled is what follows from a list that found these pods.
func (l Ledger) reconciled(found, old set) Ledger {
	listing := ledger.Listing{Asked: asked(), Namespaces: []ledger.Namespace{{Name: "team-a"}}}
	for pod := range Pods {
		if found.has(pod) {
			listing.Pods = append(listing.Pods, ledger.Pod{UID: strconv.Itoa(pod), Name: Name(pod), Holding: holding()})
		}
	}
	return stored(l.state(old).Reconciled(listing))
}

// holds says that all that after has reserved is reserved here as well.
func (l Ledger) holds(after Ledger) bool { return l.state(0).Holds(after.state(0).Reservations) }
