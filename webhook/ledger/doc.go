// Package ledger holds quotas exactly, under any number of webhook replicas and of pods created at once.
//
// Each budget has one object, its ledger: what a consistent list of its pods last found (the base), and what was
// promised since and not yet seen in a list (the reservations). A pod is let in by adding its reservation with the
// version that was read, so that two replicas can never give the same room away: compare-and-swap is the whole of the
// safety. No leader and no lock is needed for it.
//
// One worker for each budget and replica takes all requests that wait, decides them on one copy and writes once.
// Before a worker says no it reconciles: it reads the ledger, then lists the pods, in this order, and takes the list as
// the new base. Reservations that the list shows are dropped, and so are those that were older than Expiry when the
// list began: the API server gives a request up long before, so that no pod can come of them any more. Every pod
// created after the list has its reservation in the version that is swapped, or the swap fails.
//
// A ledger that is deleted or spoilt is rebuilt from a list. Whoever remembers it lets nobody in for Expiry, since what
// others had reserved is not known. If every replica that had used it in the last minute is gone as well, nobody knows
// that it was there, and pods that were on their way at that moment are not counted until the next list.
//
// What holds: the pods that live and were let in here never hold more than the quota. What is not given back by any
// event is given back within Expiry; a dry run writes nothing; a "no" was true at an instant between request and
// answer. State is pure and decides everything; test/model explores it exhaustively.
package ledger
