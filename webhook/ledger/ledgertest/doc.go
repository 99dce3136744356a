// Package ledgertest is a cluster in memory for tests of the ledger: objects with versions, pods with names that only
// one of them can have, consistent lists, and every fault that an API server shows its clients. It may be imported by
// tests only.
package ledgertest
