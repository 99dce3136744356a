// Package quotametrics exports what quotas limit and what pods use of them: in metrics, for each budget, its limits, usage
// and reservations, and for each namespace what its pods are charged now and over time; in Events, the pods that were
// created without a review. It also removes the ledgers of budgets that no longer exist.
//
// The one idea: the ledger's reconciles have found all of this already, so nothing is listed or watched here. A Report is
// recorded under a lock; a scrape makes the series from the last Report of each budget. Only the leader exports series, so
// that replicas may be summed.
package quotametrics
