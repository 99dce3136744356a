// Package ledger enforces quotas exactly, with any number of webhook replicas and of pods created at once.
//
// Each budget has one stored object, its ledger: what a consistent list of its pods last found (the base), and what was
// promised since and is in no list yet (the reservations). To admit a pod, a replica writes its reservation over the
// version that it read, so that two replicas can never give the same capacity away: compare-and-swap alone makes this safe,
// without a leader and without a lock.
//
// One worker for each budget and replica takes the requests that wait, decides them on one copy and writes once. If the write
// fails, the next attempt includes the requests that have arrived since. For some seconds after a conflict, a replica that has
// written for several requests waits for twice the time that the write took, so that others can write. Before a
// worker denies, it reconciles: it reads the ledger, then lists the pods, in this order, and takes the list as the new
// base. It drops the reservations of listed pods, and those that were older than ReservationTTL when the list began: the
// API server gives up a request long before, so that such a pod can no longer be created. All of this is dated by the API
// server's clock, never by a replica's. Every pod created after the list has its reservation in the version that is replaced, or the
// write fails.
//
// A list of thousands of pods takes seconds. Requests that need one wait in a line of their own, and those that fit without it are
// admitted meanwhile. The two lines of a worker take turns. A turn ends before its line waits, and before it lists for a ledger that its list can
// be compared with.
//
// So under load the ledger is written, by this replica or another, while pods are listed. The list then serves for the later version
// too: the ledger stores the resource version of each namespace's part of its base. Of each namespace, the later part stays: the list's
// or the ledger's.
// A denial rests on the listed pods and on what was reserved when they were listed.
//
// For an admission no list is needed. Each replica watches the namespaces that it decides about. What a watch has shown up to a
// resource version is exactly the pods that there were then, and becomes the base of a ledger that rests on nothing later. A
// watch may be late, so that nothing is denied by it, and no reservation expires.
//
// What watches show to end or to be deleted is remembered, so that the reservation of a pod that lived for a moment is dropped although
// nothing showed the pod. A reconcile without a request reads the ledger anew, since it is about what other replicas reserved.
//
// A ledger that is deleted or corrupted is rebuilt from a list. A replica that remembers the ledger admits nothing for
// ReservationTTL, since it does not know what others had reserved. If every replica that used the ledger in the last minute
// is gone too, nobody knows that it existed, and pods that were being created at that moment are not counted until the next
// list.
//
// Guarantees: the living pods that were admitted here never hold more than the quota. Capacity that no event releases is
// released within ReservationTTL; a dry run writes nothing; a denial was right at an instant between request and answer; of a
// budget of several namespaces, which are listed one after the other, the part of each namespace was.
// State is pure and decides everything; test/model explores it exhaustively.
package ledger
