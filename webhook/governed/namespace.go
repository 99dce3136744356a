// Package governed lists the namespaces under a policy, for work that covers all of them. A review looks its one namespace up in
// a snapshot.
package governed

import (
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Namespace is a namespace whose policy is on, or cannot be read.
type Namespace struct {
	Name   string
	Labels map[string]string
	Policy *config.Policy // nil: it cannot be read, and nothing is changed meanwhile
	Pools  []pools.Pool
}

// Source returns all such namespaces. An error: they are not known yet.
type Source func() ([]Namespace, error)
