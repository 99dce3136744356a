package model

import "slices"

// Pods is how many pods there are at most.
const Pods = 3

// names are the names of the pods. The second and the third have one name.
var names = [Pods]string{"pod-0", "pod-1", "pod-1"}

// set is a set of pods.
type set uint8

func (s set) has(pod int) bool { return s&(1<<pod) != 0 }
func (s set) with(pod int) set { return s | 1<<pod }
func (s set) size() (n int) {
	for pod := range Pods {
		if s.has(pod) {
			n++
		}
	}
	return n
}

// Ledger is the stored ledger, each pod holding one slice.
type Ledger struct {
	Listed   bool // a list was made since there is a ledger
	Base     uint8
	Reserved set
	Rank     uint8 // of the list that Base is from: the later the list, the higher. 0: unknown
}

// Life is where a pod is in its life.
type Life uint8

// The lives.
const (
	NotThere Life = iota // not created, ended or deleted
	Live                 // stored, neither succeeded nor failed
	Deleting             // the same, with a deletionTimestamp
)

// Counter is how far a process has come.
type Counter uint8

// The places of a process, and of a pass the last four of them.
const (
	Away     Counter = iota // not begun, or ended
	Reading                 // to read the ledger
	Deciding                // to decide on what it read, and to swap
	Rereading
	Listing
	Swapping
	Promised // the answer was yes: the API server goes on
	Rebased  // to swap the list in over a ledger that was read after the list
)

// Process is one request on its way, or the pass.
type Process struct {
	At    Counter
	Seen  Ledger // what it read
	Fresh bool   // nobody has written since
	Old   set    // reservations that were expired when the list was begun
	Found set    // what the list showed
	Rank  uint8  // of that list
	Kept  set    // if Rebased: the reservations that were there before the list and are there still
}

// View is the view of a watch: the pods that lived at some earlier moment.
type View struct {
	Found set
	Rank  uint8 // of that moment. 0: nothing is shown yet
}

// World is everything there is. It is comparable: two Worlds that are equal have the same future.
type World struct {
	Ledger   Ledger
	Life     [Pods]Life
	Requests [Pods]Process
	Pass     Process
	// Views are the views of two replicas' watches.
	Views [2]View
	// Late is a write whose sender has given up on it, and which may still land.
	Late      Ledger
	LateFresh bool
	LateThere bool
	// Begun and Over are the requests that have arrived, and those of which no pod can come any more. Old are those of
	// whom that is so for long.
	Begun, Over, Old set
	// Full are the waiting requests for which there was no room at an instant since they arrived.
	Full set
	// Wrong are those that were denied although there was room all the time.
	Wrong set
}

// living are the pods that hold something.
func (w *World) living() (s set) {
	for pod, life := range w.Life {
		if life == Live || life == Deleting {
			s = s.with(pod)
		}
	}
	return s
}

// nameTaken reports whether a living pod has the pod's name.
func (w *World) nameTaken(pod int) bool {
	for other := range Pods {
		if w.living().has(other) && names[other] == names[pod] {
			return true
		}
	}
	return false
}

// roomTaken is the number of living pods and reservations of other names than this one's.
func (w *World) roomTaken(pod int) int {
	reserved := map[string]bool{}
	for other := range Pods {
		if w.Ledger.Reserved.has(other) && !w.living().has(other) && names[other] != names[pod] {
			reserved[names[other]] = true
		}
	}
	return w.living().size() + len(reserved)
}

// swap writes next if fresh, and reports whether it did. Writing the present value changes nothing.
func (w *World) swap(fresh bool, next Ledger) bool {
	if !fresh {
		return false
	}
	if next != w.Ledger {
		w.write(next)
	}
	return true
}

// write changes the ledger, and with it makes stale what everyone has read.
func (w *World) write(next Ledger) {
	w.Ledger = next
	for i := range w.Requests {
		w.Requests[i].Fresh = false
	}
	w.Pass.Fresh, w.LateFresh = false, false
}

// mentioned are the pods whose reservation is somewhere: stored, read by someone, or on its way.
func (w *World) mentioned() set {
	all := w.Ledger.Reserved | w.Pass.Seen.Reserved | w.Late.Reserved
	for i := range w.Requests {
		all |= w.Requests[i].Seen.Reserved
	}
	return all
}

// forget drops what can make no difference any more, so that worlds with one future are one.
func (w *World) forget() {
	w.Old &= w.mentioned()
	w.rerank()
}

// ranks are the ranks that can make a difference.
func (w *World) ranks() []*uint8 {
	all := append(make([]*uint8, 0, 12), &w.Ledger.Rank)
	if w.LateThere {
		all = append(all, &w.Late.Rank)
	}
	for i := range w.Views {
		all = append(all, &w.Views[i].Rank)
	}
	for _, p := range []*Process{&w.Requests[0], &w.Requests[1], &w.Requests[2], &w.Pass} {
		if p.At == Deciding || p.At == Listing || p.At == Swapping || p.At == Rebased {
			all = append(all, &p.Seen.Rank)
		}
		all = append(all, &p.Rank)
	}
	return all
}

// rerank keeps the order of the ranks alone.
func (w *World) rerank() {
	ranks := w.ranks()
	used := make([]uint8, 0, 12)
	for _, r := range ranks {
		if *r > 0 && !slices.Contains(used, *r) {
			used = append(used, *r)
		}
	}
	slices.Sort(used)
	for _, r := range ranks {
		*r = uint8(slices.Index(used, *r) + 1)
	}
}

// newest is a rank above all others.
func (w *World) newest() uint8 {
	most := uint8(0)
	for _, r := range w.ranks() {
		most = max(most, *r)
	}
	return most + 1
}
