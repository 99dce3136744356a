package policies

// Book is the set of policies of a cluster, ready to be asked for a namespace. The zero Book governs nothing.
type Book struct{}

// NewBook collects policies. Problems between documents (two defaults, one name claimed twice) are reported by For,
// for the namespaces that they concern.
func NewBook(documents []*Policy) Book { return Book{} }

// For returns the policy of a namespace: by name, else by selector, else the default; nil where none governs it. Two
// that claim the namespace with equal right are an error that names both.
func (b Book) For(ns Namespace) (*Policy, error) { return nil, nil }

// Default returns the cluster's default policy, or nil: pools are declared there.
func (b Book) Default() *Policy { return nil }
