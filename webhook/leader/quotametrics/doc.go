// Package quotametrics exports the limits of quotas and the usage of pods: in metrics, for each budget, its limits,
// usage and reservations, and for each namespace the present and accumulated charge of its pods; in Events, the pods
// that were created without a review. It also removes the ledgers of budgets that no longer exist.
//
// The one idea: the ledger's reconciles have found all of this already, so nothing is listed or watched here. A Report is
// recorded under a lock; a scrape makes the series from the last Report of each budget. Only the leader exports series, so
// that replicas may be summed.
package quotametrics
