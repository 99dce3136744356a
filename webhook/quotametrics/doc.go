// Package quotametrics tells what came of quotas: in metrics what each budget limits, holds and reserves, and what each
// namespace holds now and has held over time; in Events the pods that nobody was asked about. And it removes the ledgers
// of budgets that are no more.
//
// The one idea: the ledger's reconciles have found all of it already, so nothing is listed or watched here. A Report is
// noted under a lock and no more; the series are made of the last one of each budget when somebody asks for them. Only the
// replica that leads tells, so that replicas may be summed.
package quotametrics
