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

// Step is one thing that can happen: what, and the world after it.
type Step struct {
	What string
	To   World
}

// explorer lists the steps out of one world.
type explorer struct {
	Variant
	from  World
	steps []Step
}

// Steps are all that can happen next.
func (v Variant) Steps(w World) []Step {
	e := &explorer{Variant: v, from: w}
	for pod := range Pods {
		e.request(pod)
		e.fate(pod)
	}
	e.pass()
	if w.LateThere {
		e.add("a write lands late", func(w *World) {
			w.swap(w.LateFresh || e.WriteBlindly, w.Late)
			w.Late, w.LateFresh, w.LateThere = Ledger{}, false, false
		})
	}
	return e.steps
}

// add notes a step. Who waits while there is no room may be refused from then on.
func (e *explorer) add(what string, do func(*World)) {
	w := e.from
	do(&w)
	for pod := range Pods {
		waits := w.Begun.has(pod) && !w.Over.has(pod)
		if waits && w.roomTaken(pod)+1 > Limit {
			w.Full = w.Full.with(pod)
		}
	}
	e.steps = append(e.steps, Step{what, w})
}

// fate is what happens to a pod outside of all replicas.
func (e *explorer) fate(pod int) {
	w := &e.from
	if w.Begun.has(pod) && !w.Over.has(pod) {
		e.add(fmt.Sprintf("request %d is given up, or its replica dies", pod), func(w *World) { w.end(pod) })
	}
	if w.Requests[pod].At == Promised && !w.nameTaken(pod) {
		e.add(fmt.Sprintf("pod %d is created", pod), func(w *World) {
			w.Life[pod] = Live
			w.end(pod)
		})
	}
	if w.Over.has(pod) && !w.Old.has(pod) {
		e.add(fmt.Sprintf("a minute passes for request %d", pod), func(w *World) { w.Old = w.Old.with(pod) })
	}
	switch w.Life[pod] {
	case Live:
		e.add(fmt.Sprintf("pod %d is being deleted", pod), func(w *World) { w.Life[pod] = Deleting })
		e.add(fmt.Sprintf("pod %d ends", pod), func(w *World) { w.Life[pod] = Gone })
	case Deleting:
		e.add(fmt.Sprintf("pod %d is gone", pod), func(w *World) { w.Life[pod] = Gone })
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
	p, at := e.from.Requests[pod], func(what string) string { return fmt.Sprintf("request %d %s", pod, what) }
	switch p.At {
	case Away:
		if !e.from.Begun.has(pod) {
			e.add(at("arrives"), func(w *World) { w.Begun, w.Requests[pod].At = w.Begun.with(pod), Reading })
		}
	case Reading:
		e.add(at("reads"), func(w *World) { w.Requests[pod] = Process{At: Deciding, Seen: w.Ledger, Fresh: true} })
		if e.CountFromCache {
			e.add(at("looks into a cache"), func(w *World) { w.Requests[pod] = Process{At: Swapping, Found: w.living()} })
		}
	case Deciding:
		e.decide(pod, p, at)
	case Rereading, Listing:
		e.look(at, p, func(w *World) *Process { return &w.Requests[pod] })
	case Swapping:
		e.conclude(pod, p, at)
	}
}

// decide answers yes by what was read last, or goes on to a list.
func (e *explorer) decide(pod int, p Process, at func(string) string) {
	next, yes := p.Seen.reserve(pod)
	switch {
	case p.Seen.Listed && yes:
		e.promise(pod, p, next, at)
	case p.Seen.Listed && e.RefuseUnseen:
		e.add(at("is refused"), func(w *World) { w.refuse(pod) })
	default:
		e.add(at("goes on to a list"), func(w *World) { w.Requests[pod] = Process{At: Rereading} })
	}
}

// promise swaps, and the answer is yes where that is known to have worked.
func (e *explorer) promise(pod int, p Process, next Ledger, at func(string) string) {
	fresh := p.Fresh || e.WriteBlindly
	e.add(at("swaps"), func(w *World) {
		if w.swap(fresh, next) {
			w.Requests[pod] = Process{At: Promised}
		} else {
			w.Requests[pod] = Process{At: Reading}
		}
	})
	e.add(at("swaps, the answer is lost"), func(w *World) {
		w.swap(fresh, next)
		w.Requests[pod] = Process{At: Reading}
	})
	if !e.from.LateThere {
		e.add(at("swaps, the write stays on its way"), func(w *World) {
			w.Late, w.LateFresh, w.LateThere = next, p.Fresh, true
			w.Requests[pod] = Process{At: Reading}
		})
	}
}

// look reads the ledger and then lists.
func (e *explorer) look(at func(string) string, p Process, of func(*World) *Process) {
	read := func(w *World) { of(w).Seen, of(w).Fresh = w.Ledger, true }
	list := func(w *World) { of(w).Found = e.listed(w) }
	first, second := read, list
	if e.ListBeforeLedger {
		first, second = list, read
	}
	if p.At == Rereading {
		e.add(at("looks for the first time"), func(w *World) {
			of(w).At, of(w).Old = Listing, w.Old
			first(w)
		})
		return
	}
	e.add(at("looks for the second time"), func(w *World) {
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
func (e *explorer) conclude(pod int, p Process, at func(string) string) {
	if e.CountFromCache {
		e.add(at("is answered from the cache"), func(w *World) {
			if p.Found.size()+1 <= Limit {
				w.Requests[pod] = Process{At: Promised}
			} else {
				w.end(pod)
			}
		})
		return
	}
	reconciled := p.Seen.reconciled(p.Found, e.oldFor(p))
	if next, yes := reconciled.reserve(pod); yes {
		e.promise(pod, p, next, at)
		return
	}
	e.add(at("swaps the list in, and is refused"), func(w *World) {
		if w.swap(p.Fresh || e.WriteBlindly, reconciled) || w.Ledger.holds(reconciled) {
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
	p, at := e.from.Pass, func(what string) string { return "the pass " + what }
	switch p.At {
	case Away:
		e.add(at("begins"), func(w *World) { w.Pass.At = Rereading })
		if e.ExpireUnlisted {
			e.add(at("drops what has expired"), func(w *World) {
				next := w.Ledger
				next.Reserved &^= w.Old
				w.swap(true, next)
			})
		}
	case Rereading, Listing:
		e.look(at, p, func(w *World) *Process { return &w.Pass })
	case Swapping:
		next := p.Seen.reconciled(p.Found, e.oldFor(p))
		e.add(at("swaps"), func(w *World) {
			w.swap(p.Fresh || e.WriteBlindly, next)
			w.Pass = Process{}
		})
		e.add(at("dies"), func(w *World) { w.Pass = Process{} })
	}
}
