package target

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/manifest"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/cluster"
)

// Cluster is what files or a live cluster say: policies, pools and namespaces.
type Cluster struct {
	Book      config.Book
	Pools     []pools.Pool
	Guard     *config.GuardSettings
	Namespace string                       // of objects that name none
	Labels    map[string]map[string]string // of namespaces, by name

	tenants  map[string]*config.TenantDocument // by namespace; under "": of each that has none of its own
	ranges   map[string][]*corev1.LimitRange   // by namespace
	snapshot *webhookcluster.Snapshot          // where policies come from a live cluster, in the place of Book
	complete bool
	extra    map[string]string // labels of every namespace, from flags
}

// Input is what a decision about a pod of the namespace depends on, the pod itself left out.
func (c *Cluster) Input(namespace string) policies.Input {
	ns := manifest.Namespace(namespace, c.Labels[namespace])
	maps.Copy(ns.Labels, c.extra)
	var in policies.Input
	if c.snapshot != nil {
		in = c.snapshot.Input(ns)
	} else {
		policy, err := c.Book.For(ns)
		in = policies.Input{Namespace: ns, Policy: policy, PolicyError: err, Pools: c.Pools, PoolsComplete: c.complete, Guard: c.Guard}
	}
	in.LimitRanges = c.ranges[namespace]
	return in.Tightened(cmp.Or(c.tenants[namespace], c.tenants[""]))
}
