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
	RefuseUnseen     bool // say no by what was read last, without a list
}

// Event is what happens in a step, and to which request or pod, or to the pass.
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
	for pod := range Pods {
		e.request(pod)
		e.fate(pod)
	}
	e.pass()
	if w.LateThere {
		e.add(nobody, "a write lands late", func(w *World) {
			w.swap(w.LateFresh || e.WriteBlindly, w.Late)
			w.Late, w.LateFresh, w.LateThere = Ledger{}, false, false
		})
	}
	return e.steps
}

// add notes a step. Who waits while there is no room may be refused from then on.
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

// fate is what happens to a pod outside of all replicas.
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

// end says that no pod can come of the request any more.
func (w *World) end(pod int) {
	w.Requests[pod] = Process{}
	w.Over = w.Over.with(pod)
	w.Full &^= 1 << pod
}

// request is what a replica does next for a request.
func (e *explorer) request(pod int) {
	p := e.from.Requests[pod]
	switch p.At {
	case Away:
		if !e.from.Begun.has(pod) {
			e.add(pod, "arrives", func(w *World) { w.Begun, w.Requests[pod].At = w.Begun.with(pod), Reading })
		}
	case Reading:
		e.add(pod, "reads", func(w *World) { w.Requests[pod] = e.read(pod) })
		if e.CountFromCache {
			e.add(pod, "looks into a cache", func(w *World) { w.Requests[pod] = Process{At: Swapping, Found: w.living()} })
		}
	case Deciding:
		e.decide(pod, p)
	case Rereading, Listing:
		e.look(pod, p, func(w *World) *Process { return &w.Requests[pod] })
	case Swapping:
		e.conclude(pod, p)
	}
}

// read is the request's process once it has read the ledger: it decides on that, or goes on to a list.
func (e *explorer) read(pod int) Process {
	_, yes := e.rules.reserve(e.from.Ledger, pod)
	if !e.from.Ledger.Listed || !yes && !e.RefuseUnseen {
		return Process{At: Rereading}
	}
	return Process{At: Deciding, Seen: e.from.Ledger, Fresh: true}
}

// decide answers by what was read last.
func (e *explorer) decide(pod int, p Process) {
	if next, yes := e.rules.reserve(p.Seen, pod); yes {
		e.promise(pod, p, next)
		return
	}
	e.add(pod, "is refused", func(w *World) { w.refuse(pod) })
}

// promise swaps, and the answer is yes where that is known to have worked.
func (e *explorer) promise(pod int, p Process, next Ledger) {
	if next == p.Seen { // an earlier write of its own, whose answer was lost
		e.add(pod, "finds its reservation", func(w *World) { w.Requests[pod] = Process{At: Promised} })
		return
	}
	fresh := p.Fresh || e.WriteBlindly
	e.add(pod, "swaps", func(w *World) {
		if w.swap(fresh, next) {
			w.Requests[pod] = Process{At: Promised}
		} else {
			w.Requests[pod] = Process{At: Reading}
		}
	})
	e.add(pod, "swaps, the answer is lost", func(w *World) {
		w.swap(fresh, next)
		w.Requests[pod] = Process{At: Reading}
	})
	if !e.from.LateThere {
		e.add(pod, "swaps, the write stays on its way", func(w *World) {
			w.Late, w.LateFresh, w.LateThere = next, p.Fresh, true
			w.Requests[pod] = Process{At: Reading}
		})
	}
}

// look reads the ledger and then lists.
func (e *explorer) look(pod int, p Process, of func(*World) *Process) {
	read := func(w *World) { of(w).Seen, of(w).Fresh = w.Ledger, true }
	list := func(w *World) { of(w).Found = e.listed(w) }
	first, second := read, list
	if e.ListBeforeLedger {
		first, second = list, read
	}
	if p.At == Rereading {
		e.add(pod, "looks for the first time", func(w *World) {
			of(w).At, of(w).Old = Listing, w.Old
			first(w)
		})
		return
	}
	e.add(pod, "looks for the second time", func(w *World) {
		of(w).At = Swapping
		second(w)
	})
}

// listed is what a list shows.
func (e *explorer) listed(w *World) set {
	found := w.living()
	for pod := range Pods {
		if e.ReleaseEarly && w.Life[pod] == Deleting {
			found &^= 1 << pod
		}
	}
	return found
}

// conclude answers by the list.
func (e *explorer) conclude(pod int, p Process) {
	if e.CountFromCache {
		e.add(pod, "is answered from the cache", func(w *World) {
			if p.Found.size()+1 <= Limit {
				w.Requests[pod] = Process{At: Promised}
			} else {
				w.end(pod)
			}
		})
		return
	}
	reconciled := e.rules.reconcile(p.Seen, p.Found, e.oldFor(p))
	if next, yes := e.rules.reserve(reconciled, pod); yes {
		e.promise(pod, p, next)
		return
	}
	e.add(pod, "swaps the list in, and is refused", func(w *World) {
		if w.swap(p.Fresh || e.WriteBlindly, reconciled) || e.rules.hold(w.Ledger, reconciled) {
			w.refuse(pod)
		} else {
			w.Requests[pod] = Process{At: Reading}
		}
	})
}

func (e *explorer) oldFor(p Process) set {
	if e.ExpireLate {
		return e.from.Old
	}
	return p.Old
}

// refuse answers no, which has to be true of an instant since the request arrived.
func (w *World) refuse(pod int) {
	if !w.Full.has(pod) {
		w.Wrong = w.Wrong.with(pod)
	}
	w.end(pod)
}

// pass is what the reconcile does next that nobody asked for.
func (e *explorer) pass() {
	p := e.from.Pass
	switch p.At {
	case Away:
		e.add(thePass, "begins", func(w *World) { w.Pass.At = Rereading })
		if e.ExpireUnlisted {
			e.add(thePass, "drops what has expired", func(w *World) {
				next := w.Ledger
				next.Reserved &^= w.Old
				w.swap(true, next)
			})
		}
	case Rereading, Listing:
		e.look(thePass, p, func(w *World) *Process { return &w.Pass })
	case Swapping:
		next := e.rules.reconcile(p.Seen, p.Found, e.oldFor(p))
		e.add(thePass, "swaps", func(w *World) {
			w.swap(p.Fresh || e.WriteBlindly, next)
			w.Pass = Process{}
		})
		e.add(thePass, "dies", func(w *World) { w.Pass = Process{} })
	}
}
