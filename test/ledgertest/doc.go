// Package ledgertest is an in-memory cluster for tests of the ledger: versioned objects, pods with unique names, consistent
// lists, and every fault that an API server shows its clients. Only tests may import it.
package ledgertest
