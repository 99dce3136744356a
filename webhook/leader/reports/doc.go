// Package reports audits the pods of namespaces that are not enforced, and writes the effect of enforce on them as
// policy reports.
//
//	pods (list.go) -> Evaluate, WithinQuota (decide.go) -> Of (report.go) -> Store (store.go); Auditor does so at intervals (auditor.go)
package reports
