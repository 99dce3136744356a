package model

import "fmt"

// request takes a replica's next step for a request.
func (e *explorer) request(pod int) {
	p := e.from.Requests[pod]
	switch p.At {
	case Away:
		if !e.from.Begun.has(pod) {
			e.add(pod, "arrives", func(w *World) { w.Begun, w.Requests[pod].At = w.Begun.with(pod), Reading })
		}
	case Reading:
		e.add(pod, "reads", func(w *World) { w.Requests[pod] = e.read(pod) })
		if folded, ok := e.folded(pod); ok {
			if _, fits := e.rules.reserve(folded, pod); fits {
				e.add(pod, "reads, and counts what its watch has shown", func(w *World) {
					w.Requests[pod] = Process{At: Deciding, Seen: folded, Fresh: true}
				})
			}
		}
		if e.CountFromCache {
			e.add(pod, "looks into a cache", func(w *World) { w.Requests[pod] = Process{At: Swapping, Found: w.living()} })
		}
	case Deciding:
		e.decide(pod, p)
	case Rereading, Listing:
		e.look(pod, p, func(w *World) *Process { return &w.Requests[pod] })
	case Swapping, Rebased:
		e.conclude(pod, p)
		e.rebase(pod, p, func(w *World) *Process { return &w.Requests[pod] })
	}
}

// rebase reads the ledger again after another wrote, to swap the list in over that.
func (e *explorer) rebase(who int, p Process, of func(*World) *Process) {
	if e.Rebase == RebaseNever || p.Fresh || e.Rebase != RebaseAlways && !e.from.Ledger.comparable() {
		return
	}
	kept := e.rules.stillIn(e.counted(p), e.from.Ledger).Reserved
	e.add(who, "reads again, for its list", func(w *World) {
		of(w).At, of(w).Seen, of(w).Fresh, of(w).Kept = Rebased, w.Ledger, true, kept
	})
}

// ranked reports whether lists and views have ranks: the ledger stores them.
func (e *explorer) ranked() bool { return e.Rebase != RebaseNever || e.Fold != RebaseNever }

// view is the view of the replica's watch that serves a request, or the pass.
func (e *explorer) view(who int) *View {
	if !e.TwoViews {
		return &e.from.Views[0]
	}
	return &e.from.Views[max(who, 0)%len(e.from.Views)]
}

// folded is the ledger with what a watch has shown in place of its base.
func (e *explorer) folded(who int) (Ledger, bool) {
	v, l := e.view(who), e.from.Ledger
	if e.Fold == RebaseNever || v.Rank == 0 || !l.Listed || e.Fold != RebaseAlways && !l.precedes(v.Rank) {
		return Ledger{}, false
	}
	return e.rules.fold(l, v.Found, v.Rank), true
}

// watch advances the watches: some time they show the living pods.
func (e *explorer) watch() {
	if e.Fold == RebaseNever {
		return
	}
	for i, v := range e.from.Views {
		if i > 0 && !e.TwoViews {
			return
		}
		if v.Found == e.from.living() && v.Rank >= e.from.Ledger.Rank && v.Rank > 0 {
			continue
		}
		e.add(nobody, fmt.Sprintf("watch %d shows what lives", i), func(w *World) {
			w.Views[i] = View{w.living(), w.newest()}
		})
	}
}

// counted is the basis of a denial: the listed pods, and the reservations of that moment.
func (e *explorer) counted(p Process) Ledger {
	if p.At == Rebased {
		return Ledger{Listed: true, Base: uint8(p.Found.size()), Reserved: p.Kept}
	}
	return e.reconciled(p)
}

// reconciled is the ledger that was read, with the list.
func (e *explorer) reconciled(p Process) Ledger {
	if p.At == Rebased && e.Rebase != RebaseAlways {
		return e.rules.merge(p.Seen, p.Found, e.oldFor(p), p.Rank)
	}
	return e.rules.reconcile(p.Seen, p.Found, e.oldFor(p), p.Rank)
}

// read is the request's process once it has read the ledger: it decides on that, or goes on to a list.
func (e *explorer) read(pod int) Process {
	_, yes := e.rules.reserve(e.from.Ledger, pod)
	if !e.from.Ledger.Listed || !yes && !e.DenyUnseen {
		return Process{At: Rereading}
	}
	return Process{At: Deciding, Seen: e.from.Ledger, Fresh: true}
}

// decide answers by the last state that was read.
func (e *explorer) decide(pod int, p Process) {
	if next, yes := e.rules.reserve(p.Seen, pod); yes {
		e.promise(pod, p, next)
		return
	}
	e.add(pod, "is denied", func(w *World) { w.deny(pod) })
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
	list := func(w *World) {
		if e.ranked() {
			of(w).Rank = w.newest()
		}
		of(w).Found = e.listed(w)
	}
	first, second := read, list
	if e.ListBeforeLedger {
		first, second = list, read
	}
	if p.At == Rereading {
		e.add(pod, "looks for the first time", func(w *World) {
			*of(w) = Process{At: Listing, Old: w.Old}
			first(w)
		})
		return
	}
	e.add(pod, "looks for the second time", func(w *World) {
		of(w).At = Swapping
		second(w)
	})
}

// listed is the result of a list.
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
	reconciled := e.reconciled(p)
	if next, yes := e.rules.reserve(reconciled, pod); yes {
		e.promise(pod, p, next)
		return
	}
	e.add(pod, "swaps the list in, and is denied", func(w *World) {
		counted := e.counted(p)
		if !w.swap(p.Fresh || e.WriteBlindly, reconciled) {
			counted = e.rules.stillIn(counted, w.Ledger)
		}
		if _, fits := e.rules.reserve(counted, pod); fits {
			w.Requests[pod] = Process{At: Reading}
		} else {
			w.deny(pod)
		}
	})
}

func (e *explorer) oldFor(p Process) set {
	if e.ExpireLate {
		return e.from.Old
	}
	return p.Old
}

// deny answers no, which has to be true of an instant since the request arrived.
func (w *World) deny(pod int) {
	if !w.Full.has(pod) {
		w.Wrong = w.Wrong.with(pod)
	}
	w.end(pod)
}

// pass is the next step of the reconcile that nobody requested.
func (e *explorer) pass() {
	p := e.from.Pass
	switch p.At {
	case Away:
		e.add(thePass, "begins", func(w *World) { w.Pass.At = Rereading })
		if next, ok := e.folded(thePass); ok {
			e.add(thePass, "counts what its watch has shown", func(w *World) { w.swap(true, next) })
		}
		if e.ExpireUnlisted {
			e.add(thePass, "drops what has expired", func(w *World) {
				next := w.Ledger
				next.Reserved &^= w.Old
				w.swap(true, next)
			})
		}
	case Rereading, Listing:
		e.look(thePass, p, func(w *World) *Process { return &w.Pass })
	case Swapping, Rebased:
		e.rebase(thePass, p, func(w *World) *Process { return &w.Pass })
		next := e.reconciled(p)
		e.add(thePass, "swaps", func(w *World) {
			w.swap(p.Fresh || e.WriteBlindly, next)
			w.Pass = Process{}
		})
		e.add(thePass, "dies", func(w *World) { w.Pass = Process{} })
	}
}
