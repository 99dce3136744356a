package webhook

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
)

// Snapshot is what the policies and nodes of a cluster said at one moment. It is immutable and shared by requests.
type Snapshot struct {
	book   policies.Book
	broken map[*policies.Policy]error // stand-ins for documents that cannot be used, by which they keep their namespaces
	// unplaced are documents that do not even say whom they govern. They concern every namespace that no other policy
	// governs: one of them may have been meant, and a broken policy never means "no limits".
	unplaced  error
	documents []document         // that it was made of
	tenants   map[string]*tenant // tenants' own documents, by namespace
	pools     []policies.Pool
	guard     *policies.GuardSettings
	known     Known
}

// Read is what a replica that starts now would decide by: the policy ConfigMaps and the state (nil: none) of the system
// namespace, tenants' own documents, and the nodes. It is for tools that ask once what a Cluster watches.
func Read(configMaps, tenants []*corev1.ConfigMap, saved *corev1.ConfigMap, nodes []*corev1.Node, guard *policies.GuardSettings) *Snapshot {
	remembered := decodeState(nil)
	if saved != nil {
		remembered = decodeState(saved.Data)
	}
	documents := readDocuments(configMaps, remembered.policies)
	s := newSnapshot(documents).on(nodes, remembered.pools, guard)
	s.tenants, _ = readTenants(tenants, nil)
	s.known = s.knows(len(nodes))
	return s
}

// Known says what the snapshot was made of.
func (s *Snapshot) Known() Known { return s.known }

// on gives s the pools that the nodes offer, and those remembered.
func (s *Snapshot) on(nodes []*corev1.Node, remembered []policies.Pool, guard *policies.GuardSettings) *Snapshot {
	s.pools, s.guard = policies.PoolsFromNodes(nodes, s.poolsSpec(), remembered), guard
	return s
}

// Input is what a decision about a pod of the namespace depends on, the pod itself left out.
func (s *Snapshot) Input(ns policies.Namespace) policies.Input {
	in := s.authority(ns)
	if own := s.tenants[ns.Name]; own != nil && in.Policy != nil {
		h := own.under(in.Policy)
		in.Policy, in.TenantNotes = h.policy, h.notes
	}
	return in
}

// authority is Input without the tenant's own document.
func (s *Snapshot) authority(ns policies.Namespace) policies.Input {
	in := policies.Input{Namespace: ns, Pools: s.pools, PoolsComplete: s.poolsSpec().Complete, Guard: s.guard}
	policy, err := s.book.For(ns)
	switch {
	case err != nil:
		in.PolicyError = err
	case policy == nil:
		in.PolicyError = s.unplaced
	case s.broken[policy] != nil:
		in.PolicyError = s.broken[policy]
	default:
		in.Policy = policy
	}
	return in
}

// newSnapshot collects documents. Those that cannot be used and have no last good version claim their namespaces with
// their error.
func newSnapshot(documents []document) *Snapshot {
	s := &Snapshot{documents: documents, broken: map[*policies.Policy]error{}}
	var all []*policies.Policy
	var unplaced []error
	for _, d := range documents {
		switch {
		case d.policy != nil:
			all = append(all, d.policy)
		case d.standIn != nil:
			s.broken[d.standIn] = d.err
			all = append(all, d.standIn)
		default:
			unplaced = append(unplaced, d.err)
		}
	}
	s.book = policies.NewBook(all)
	s.unplaced = errors.Join(unplaced...)
	return s
}

// poolsSpec is what the cluster's default policy says about pools.
func (s *Snapshot) poolsSpec() policies.PoolsSpec {
	if policy := s.book.Default(); policy != nil {
		return policy.Pools
	}
	return policies.PoolsSpec{}
}

// Problem is a policy ConfigMap that cannot be used as it stands.
type Problem struct {
	Policy   string // "namespace/name"
	LastGood bool   // an earlier version governs meanwhile
	Err      error
}

// problems lists the documents that are broken, in their order.
func problems(documents []document) []Problem {
	var out []Problem
	for _, d := range documents {
		if d.err != nil {
			out = append(out, Problem{Policy: d.name, LastGood: d.policy != nil, Err: d.err})
		}
	}
	return out
}

// explain wraps the reason why a policy cannot be used, in words for whoever meets it through a refused pod.
func explain(name string, err error) error {
	return fmt.Errorf("policy %s cannot be used: %w", name, err)
}
