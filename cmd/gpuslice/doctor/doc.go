// Package doctor is the commands that check a cluster and the installation (doctor), and prove by dry-runs that the
// installation answers (verify).
//
//	gather(cluster) -> Facts -> checks -> findings
//
// gather reads the API server once and writes nothing; a check is a pure function of the facts, in a file of its own,
// with one line in checks.go. An unreadable object is a finding too, and never counts as missing.
package doctor
