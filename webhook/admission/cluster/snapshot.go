// Package cluster holds the inputs of decisions beside the pod, as one immutable Snapshot: policies, pools and what is known of them.
// It makes no API calls: package watcher follows the objects of a cluster, and the command line reads them once.
package cluster

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// Snapshot is the policies and pools of a cluster at one moment. It is immutable and shared by requests.
type Snapshot struct {
	origin *origin
	book   config.Book
	broken map[*config.Policy]error // stand-ins for documents that cannot be used, by which they keep their namespaces
	// unplaced are documents of which not even the namespaces can be read. They concern every namespace that no other policy
	// governs: one of them may have been meant, and a broken policy never means "no limits".
	unplaced  error
	documents []document         // that it was made of
	tenants   map[string]*Tenant // tenants' own documents, by namespace
	pools     []pools.Pool
	resources []string                // that nodes and device classes offer
	places    func() map[place]string // of the pools, made at first use
	nodes     int
	guard     *config.GuardSettings
	runtimes  pools.Runtimes
	failures  guardaccess.Failures
	classes   map[string]*resourcev1.DeviceClass
}

// origin is the same for Snapshots that differ in tenants' documents alone, or in nodes that change no pool.
type origin struct{ _ byte }

// generation identifies the inputs of decisions about pods of one namespace.
type generation struct {
	origin *origin
	tenant *Tenant
}

// Generation returns a value that changes with the inputs of decisions about a namespace's pods: another tenant's
// document is not among them.
func (s *Snapshot) Generation(namespace string) any {
	return generation{s.origin, s.tenants[namespace]}
}

// Objects are the sources of a Snapshot.
type Objects struct {
	Policies []*corev1.ConfigMap // of the system namespace
	Tenants  []*corev1.ConfigMap // tenants' own documents
	State    *corev1.ConfigMap   // of the system namespace; nil: none
	Source   pools.Source
	Guard    *config.GuardSettings // nil: no guard is injected
	Runtimes pools.Runtimes
}

// ReadSnapshot is the snapshot of a replica that starts now.
func ReadSnapshot(from Objects) *Snapshot {
	s, _ := Next(nil, from, LastGood(from.State), time.Now())
	return s
}

// Next is the snapshot that follows before (nil: it is a replica's first), and the tenants' documents that are new. Documents that
// cannot be used have their last good versions, of good.
func Next(before *Snapshot, from Objects, good map[string]GoodPolicy, now time.Time) (next *Snapshot, changed []*Tenant) {
	known := pools.Known{Now: now}
	var tenants map[string]*Tenant
	if before != nil {
		tenants, known.Before = before.tenants, before.pools
	}
	if from.State != nil {
		known.Saved = decodeState(from.State.Data).Pools
	}
	tenants, changed = readTenants(from.Tenants, tenants)
	next = newSnapshot(readDocuments(from.Policies, good)).withPools(from.Source, known)
	next.tenants, next.guard, next.runtimes = tenants, from.Guard, from.Runtimes
	next.failures = guardaccess.Of(from.State).Current(now)
	if before != nil && next.decidesAs(before) {
		next.origin = before.origin
	}
	return next, changed
}

// decidesAs reports whether decisions have the same inputs as before. A change of generation has all pods counted again, and nodes come
// and go by the minute.
func (s *Snapshot) decidesAs(before *Snapshot) bool {
	return reflect.DeepEqual(s.documents, before.documents) && reflect.DeepEqual(s.pools, before.pools) &&
		reflect.DeepEqual(s.classes, before.classes) && reflect.DeepEqual(s.failures, before.failures) &&
		reflect.DeepEqual(s.guard, before.guard) && reflect.DeepEqual(s.runtimes, before.runtimes)
}

// WithTenants is s with tenants' own documents, and those of them that s does not have.
func (s *Snapshot) WithTenants(documents []*corev1.ConfigMap) (next *Snapshot, changed []*Tenant) {
	out := *s
	out.tenants, changed = readTenants(documents, s.tenants)
	return &out, changed
}

// Tenants are the tenants' own documents, by namespace. Callers must not change them.
func (s *Snapshot) Tenants() map[string]*Tenant { return s.tenants }

// withPools is s with device classes, the pools that the source has, and those known from before.
func (s *Snapshot) withPools(source pools.Source, known pools.Known) *Snapshot {
	out := *s
	out.pools, out.nodes, out.classes = source.Remember(s.poolsSpec(), known), len(source.Nodes), source.Classes
	out.resources = source.Resources()
	out.places = sync.OnceValue(func() map[place]string { return placesIn(out.pools) })
	return &out
}

// ExtendedNames are the names outside of NVIDIA's by which device classes of GPUs, or of devices that a policy takes
// for GPUs, may be requested.
func (s *Snapshot) ExtendedNames() (names []string) {
	for _, policy := range s.PoliciesWithout("") {
		if !policy.Off() {
			names = append(names, accounting.DeviceClasses{Policy: policy, Pools: s.pools, Classes: s.classes}.ExtendedNames()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Book is the policies in force, and those that claim the namespaces of broken ones.
func (s *Snapshot) Book() config.Book { return s.book }

// Pools are those of the cluster.
func (s *Snapshot) Pools() []pools.Pool { return s.pools }

// PoliciesWithout are the policies in the Book without that of a ConfigMap.
func (s *Snapshot) PoliciesWithout(configMap string) (others []*config.Policy) {
	for _, d := range s.documents {
		switch {
		case d.object == configMap:
		case d.policy != nil:
			others = append(others, d.policy)
		case d.standIn != nil:
			others = append(others, d.standIn)
		}
	}
	return others
}

// conflicts lists the things that policies claim twice or limit differently, whatever labels namespaces have. Selectors
// that meet are reported where they do: to the authors of pods.
func (s *Snapshot) conflicts() []error {
	return append(s.book.Conflicts(nil), s.book.BudgetConflicts()...)
}

// Input is the input of a decision about a pod of the namespace, without the pod itself.
func (s *Snapshot) Input(ns api.Namespace) policies.Input {
	in := s.AuthorityInput(ns)
	if own := s.tenants[ns.Name]; own != nil && in.Policy != nil {
		effective := own.effectivePolicy(in.Policy)
		in.Policy, in.TenantNotes = effective.policy, effective.notes
	}
	return in
}

// AuthorityInput is Input without the tenant's own document.
func (s *Snapshot) AuthorityInput(ns api.Namespace) policies.Input {
	in := policies.Input{Namespace: ns, Pools: s.poolsFor(ns.Name), PoolsComplete: s.poolsSpec().Complete,
		Resources: s.resources, Guard: s.guard, Runtimes: s.runtimes, DeviceClasses: s.classes}
	policy, err := s.book.For(ns)
	if _, unread := ns.Labels[LabelsNotRead]; unread {
		err = errLabelsNotRead
	}
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

// Ages reports whether something ends by time: remembered pools, and reports of guards.
func (s *Snapshot) Ages() bool {
	return len(s.failures) > 0 || slices.ContainsFunc(s.pools, func(p pools.Pool) bool { return p.Remembered() })
}

// poolsFor are the pools as guards of the namespace's pods find them.
func (s *Snapshot) poolsFor(namespace string) []pools.Pool {
	if len(s.failures) == 0 {
		return s.pools
	}
	out := slices.Clone(s.pools)
	for i := range out {
		out[i].GuardFailures = s.failures.Reasons(out[i].Name, namespace)
	}
	return out
}

// newSnapshot collects documents. Those that cannot be used and have no last good version claim their namespaces with
// their error.
func newSnapshot(documents []document) *Snapshot {
	s := &Snapshot{origin: new(origin), documents: documents, broken: map[*config.Policy]error{}}
	var all []*config.Policy
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
	s.book = config.NewBook(all)
	s.unplaced = errors.Join(unplaced...)
	return s
}

// poolsSpec is the section about pools of the cluster's default policy.
func (s *Snapshot) poolsSpec() config.PoolsSpec {
	if policy := s.book.Default(); policy != nil {
		return policy.Pools
	}
	return config.PoolsSpec{}
}
