// Package reports audits the pods of namespaces that are not enforced, and writes what enforce would do to them as policy reports.
//
//	pods (list.go) -> Evaluate, WithinQuota (decide.go) -> Of (report.go) -> Store (store.go); Auditor does so at intervals (auditor.go)
package reports
