package model

import "fmt"

// Variant leaves out a rule of the algorithm. The zero Variant is the algorithm.
type Variant struct {
	CountFromCache   bool // decide on a list, reserve nothing
	ReleaseEarly     bool // a deletionTimestamp counts as gone
	ListBeforeLedger bool
	ExpireUnlisted   bool // drop expired reservations without a list
	ExpireLate       bool // judge ages after the list
	WriteBlindly     bool // write over whatever there is
	DenyUnseen       bool // say no by what was read last, without a list
	Rebase           Rebase
	Fold             Rebase // over which ledgers what a watch has shown may be swapped in
	TwoViews         bool   // two replicas have a watch each; else one has
	TwoPods          bool   // of two names; ranks of lists make too many worlds with three
}

// Rebase is over which ledgers, read after a list or what a watch has shown, that may be swapped in.
type Rebase uint8

// The rebases.
const (
	RebaseNever  Rebase = iota
	RebaseByRank        // of a list and the ledger the later serves; a view serves for those that rest on nothing later
	RebaseAlways        // all
)

// pods is the number of requested pods.
func (v Variant) pods() int {
	if v.TwoPods {
		return 2
	}
	return Pods
}

// Event is the action of a step, and its object: a request, a pod or the pass.
type Event struct {
	Pod  int
	What string
}

// String is the event as a line of a trace.
func (e Event) String() string {
	switch e.Pod {
	case thePass:
		return "pass: " + e.What
	case nobody:
		return e.What
	}
	return fmt.Sprintf("%d: %s", e.Pod, e.What)
}

// Step is one thing that can happen, and the world after it.
type Step struct {
	Event
	To World
}

// In place of a pod where an event has none.
const (
	thePass = -1
	nobody  = -2
)

// explorer lists the steps out of one world.
type explorer struct {
	Variant
	rules *rules
	from  World
	steps []Step
}

// steps are all that can happen next.
func (v Variant) steps(w World, r *rules) []Step {
	e := &explorer{Variant: v, rules: r, from: w}
	for pod := range v.pods() {
		e.request(pod)
		e.fate(pod)
	}
	e.pass()
	e.watch()
	if w.LateThere {
		e.add(nobody, "a write lands late", func(w *World) {
			w.swap(w.LateFresh || e.WriteBlindly, w.Late)
			w.Late, w.LateFresh, w.LateThere = Ledger{}, false, false
		})
	}
	return e.steps
}

// add notes a step. Who waits while there is no room may be denied from then on.
func (e *explorer) add(pod int, what string, do func(*World)) {
	w := e.from
	do(&w)
	for waiting := range Pods {
		waits := w.Begun.has(waiting) && !w.Over.has(waiting)
		if waits && w.roomTaken(waiting)+1 > Limit {
			w.Full = w.Full.with(waiting)
		}
	}
	w.forget()
	e.steps = append(e.steps, Step{Event{pod, what}, w})
}

// fate changes a pod outside of all replicas.
func (e *explorer) fate(pod int) {
	w := &e.from
	if w.Begun.has(pod) && !w.Over.has(pod) {
		e.add(pod, "the request is given up, or its replica dies", func(w *World) { w.end(pod) })
	}
	if w.Requests[pod].At == Promised && !w.nameTaken(pod) {
		e.add(pod, "the pod is created", func(w *World) {
			w.Life[pod] = Live
			w.end(pod)
		})
	}
	if w.Over.has(pod) && !w.Old.has(pod) && w.mentioned().has(pod) {
		e.add(pod, "a minute passes", func(w *World) { w.Old = w.Old.with(pod) })
	}
	switch w.Life[pod] {
	case Live:
		e.add(pod, "the pod is being deleted", func(w *World) { w.Life[pod] = Deleting })
		e.add(pod, "the pod ends", func(w *World) { w.Life[pod] = NotThere })
	case Deleting:
		e.add(pod, "the pod is gone", func(w *World) { w.Life[pod] = NotThere })
	}
}

// end notes that no pod can come of the request any more.
func (w *World) end(pod int) {
	w.Requests[pod] = Process{}
	w.Over = w.Over.with(pod)
	w.Full &^= 1 << pod
}
