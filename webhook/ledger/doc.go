// Package ledger enforces quotas exactly, with any number of webhook replicas and of pods created at once.
//
// Each budget has one stored object, its ledger. It contains the base, which a consistent list of the budget's pods
// last found, and the reservations: promises since then that are in no list yet. State (state.go) is a ledger's
// content. It is pure and decides everything; test/model explores it exhaustively.
//
// Guarantees: the living pods that were admitted here never hold more than the quota. Capacity that no event releases is released
// within ReservationTTL. A dry run writes nothing. A denial was right at an instant between request and answer; of a budget of
// several namespaces, which are listed one after the other, the part of each namespace was.
//
// # Who writes (stored.go)
//
// Every replica writes, without a leader and without a lock. To admit a pod, a replica writes its reservation over the version that it
// read, so that two replicas can never give the same capacity away: compare-and-swap alone makes this safe. A replica has one worker
// for each budget. It takes the requests that wait, decides them on one copy and writes once. If the write fails, the next attempt
// includes the requests that have arrived since. A replica that has written for several requests waits for twice the time that the write
// took, for some seconds after a conflict, so that others can write.
//
// A watch shows each replica what the others write, so that they seldom have to read. It may be late: the write then conflicts. After
// a conflict the ledger is read. It is always read for a denial, a dry run or a reconcile: they may write nothing that could conflict.
//
// A ledger that is deleted or corrupted is rebuilt from a list. Its reservations are lost, so that every replica admits
// nothing for ReservationTTL, by NotBefore of the new ledger. Who reads a corrupted ledger notices that; a deleted one is
// missed by the replicas that used it in the last minute. If they are gone too, nobody knows that it existed, and pods
// that were being created at that moment are not counted until the next list.
//
// # When pods are listed (round.go)
//
// No list is needed for an admission. Each replica watches the namespaces that it decides about. A watch up to a
// resource version shows exactly the pods of that version. They become the base of a ledger that is not newer. A watch
// may be late, so nothing is denied by it and no reservation expires.
//
// Pods that no replica reviewed, during an outage or a bypass, have no reservation. A replica
// therefore admits a pod only after it has counted the pods itself: by its watch, or by a list while the watch starts or is broken. If
// a namespace cannot be watched, the last list counts for 30 s (countTTL). A dry run takes nothing, so that one that fits rests on the
// ledger alone.
//
// A watch starts again when pools, classes or policies change by which pods without a promise are counted, but not while it is young
// (minWatchAge): meanwhile each batch lists the pods. Pods that name neither an extended resource nor a claim hold nothing in any cluster.
//
// The pods are listed when a request does not fit without, and for a budget whose watch is broken, whose reservations
// may have expired or that was not listed for minutes. Which budgets are reconciled without a request, and when, is in
// schedule.go. Such a reconcile reads the ledger again, since it is about the reservations of other replicas.
//
//	read ── fits ──────────────────────────────► written ──► admitted
//	  │ does not fit
//	  ▼
//	listed ── the ledger is as it was read ────► written ──► admitted or denied
//	  │                                           │   ▲
//	  │ the ledger has changed           conflict │   │
//	  │                                           ▼   │
//	  └────────────────────────────────────────► rebased
//
// A list is rebased on a later version of the ledger: of each namespace the newer part stays, and reservations that the
// later version lacks count no more. After a conflict, the requests that do not fit beside the remaining ones are
// denied at once, without a write. Anything else goes back to read: another error of the write, a ledger that was
// created again, a list and a ledger that cannot be compared. An attempt (reconcile.go) is one list on this way.
//
// # Why there are two lines (worker.go)
//
// A list of thousands of pods takes seconds. Every request begins in the line admits. Those that need a list move to the line lists,
// and those that fit without one are admitted meanwhile. The two lines of a worker take turns: a turn ends before its line waits, and
// before the line lists reads its list.
//
// So under load the ledger is written, by this replica or another, while pods are listed. The list then serves for the later version
// too: the ledger stores the resource version of each namespace's part of its base. Of each namespace the newer part stays. A ledger
// without these versions cannot be compared with a list, which a write meanwhile would make useless: there the line admits lists
// itself, and keeps its turn.
//
// # Expiry (state.go)
//
// A list drops the reservations of its pods, and those that were older than ReservationTTL when it began: the API server gives up a
// request long before, so that such a pod can no longer be created. All of this is dated by the API server's clock, never by a
// replica's. A view drops the reservations of its pods alone.
//
// Pods that watches show to end or to be deleted are remembered (gone.go). The reservation of a pod that lived for a moment is
// dropped although nothing showed the pod.
//
// # The basis of a denial (reconcile.go)
//
// A worker reads the ledger, then lists the pods, in this order. Every pod created after the list has its reservation in the version
// that is replaced, or the write fails. A denial rests on the listed pods, and on the reservations that existed when they were listed
// and still do.
//
// # Tried and left
//
//   - A ResourceQuota of Kubernetes: it counts whole units of a resource under one name. It cannot count the memory of slices, or by
//     pool and class.
//   - A leader that decides for all replicas: while it changes no pod is created, and each review of the others takes one more call.
//   - A Lease as a lock around read, decide and write: three writes for one, and a replica that dies in it stops the budget until the
//     Lease expires. Compare-and-swap needs none.
//   - A queue for each namespace: namespaces that share a budget would write one object from several queues, and conflict with
//     themselves. A worker is for a budget.
//   - A custom resource for the ledger: it would need a definition before the webhook can start, and be no more atomic than a ConfigMap.
//   - Pods alone, without reservations: the API server stores a pod after the webhook has answered, so that two pods at once would both
//     see the room for one.
//   - A sum from which each pod that goes is subtracted: an event that is lost or comes twice makes it wrong for good. A list or a view
//     replaces it whole.
package ledger
