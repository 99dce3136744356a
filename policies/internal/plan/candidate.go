package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// candidate is one way to place a pod: a strategy on the pools of one site, a pool for each container.
type candidate struct {
	strategy   *strategies.Strategy
	containers []placed
	guard      guardPlan
	waste      quantity.MiB
	order      int          // of the strategy in the policy
	instances  []*candidate // from which a container gets an instance instead, where one is free; empty: there is no choice
}

// placed is one container of the pod on the pool it would use.
type placed struct {
	want
	pool      *pools.Pool
	share     quantity.Devices // the part of a device in one unit of the pool's resource
	size      sizeOn
	profile   frameworks.Result
	tiers     []api.Tier
	preferred instance // tried before the share; the zero value: none
}

// instance is a MIG instance that a container gets where one is free.
type instance struct {
	profile string
	memory  quantity.MiB     // the most that one of the profile has
	share   quantity.Devices // the most that one is of a device
}

// want is one container's request with the size completed from policy.
type want struct {
	request  api.ContainerRequest
	resolved api.Size
	class    string       // of policy, that the request was sized by
	most     quantity.MiB // of a size that the pod does not request: policy's limit cuts it; 0: no limit
	spec     *corev1.Container
	nearest  bool // an amount that a MIG profile has in its name gets that instance
	init     bool // it ends, or is ready, before the others start
	sidecar  bool // an init container that goes on running
}

// candidates returns every placement that fits, best first, and why the other pools do not: pools with nodes before those
// without, policy's strategies in their order, then the least waste, then the name.
func candidates(in *Input, req api.Request, wants []want) (fitting []candidate, unfit []*FitError) {
	for order, name := range in.Policy.Strategies {
		strategy := strategies.Named(name)
		if strategy.Name == "" || req.Strategy != "" && req.Strategy != name {
			continue
		}
		for i := range in.Pools {
			site := in.Pools[i].Site
			tried := func(p pools.Pool) bool { return p.Strategy == name && p.Site == site }
			if in.Pools[i].Strategy != name || slices.ContainsFunc(in.Pools[:i], tried) {
				continue
			}
			c, e := place(in, candidate{strategy: strategy, order: order}, site, wants)
			if e != nil {
				unfit = append(unfit, e)
				continue
			}
			fitting = append(fitting, c)
		}
	}
	if len(fitting) == 0 || in.Explain { // these reasons are read where nothing fits, and cost a message each
		unfit = append(unfit, otherwiseShared(in, req)...)
	}
	slices.SortStableFunc(fitting, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.lateness(), b.lateness()), cmp.Compare(a.order, b.order),
			cmp.Compare(a.waste, b.waste), cmp.Compare(a.pool().Name, b.pool().Name))
	})
	return fitting, unfit
}

// otherwiseShared lists the pools whose strategy is unknown, not allowed by policy, or not the one that the pod requests.
func otherwiseShared(in *Input, req api.Request) (unfit []*FitError) {
	for i := range in.Pools {
		p := &in.Pools[i]
		switch {
		case p.Strategy == "":
			unfit = append(unfit, &FitError{kind: kindStrategy, pool: p})
		case !in.Policy.Allows(p.Strategy):
			unfit = append(unfit, &FitError{kind: kindStrategy, pool: p, text: "which policy does not allow"})
		case req.Strategy != "" && req.Strategy != p.Strategy:
			unfit = append(unfit, &FitError{kind: kindStrategy, pool: p, text: anotherStrategy})
		}
	}
	return unfit
}

// place gives each container the pool that wastes least, of those of the site with the candidate's strategy.
func place(in *Input, c candidate, site string, wants []want) (candidate, *FitError) {
	strategy := c.strategy
	c.containers = make([]placed, 0, len(wants))
	for _, a := range wants {
		best, e := bestPool(in, strategy, site, a)
		if e != nil {
			return c, e
		}
		c.containers = append(c.containers, best)
		c.waste += wasteOf(best)
	}
	if c.pool().Granular && c.parts() > int64(c.pool().Replicas) { // the node has one device, so that all parts are of it
		return c, &FitError{kind: kindSize, pool: c.pool(), requested: quantity.MiB(c.parts()) * c.pool().Granule(),
			text: " for all its containers"}
	}
	if ok, why := c.pool().Reach(in.Pod, in.Policy.Pod.Tolerations); !ok {
		return c, &FitError{kind: kindReach, pool: c.pool(), text: why}
	}
	if strategy.Requires == nil {
		return c, nil
	}
	for i := range c.containers {
		placement := placementOf(in, c.containers[i].pool, c.containers[i].spec)
		placement.Compute = c.containers[i].request.Size.Compute
		if size := c.containers[i].size; size.limit > size.slice { // a strategy that enforces one number cannot let a pod burst
			placement.Burst = size.limit
		}
		if v := strategy.Requires(placement); v != nil {
			return c, &FitError{kind: kindRule, pool: c.pool(), violation: v}
		}
	}
	return c, nil
}

// placementOf holds the facts about a container on a pool that a strategy reads.
func placementOf(in *Input, pool *pools.Pool, container *corev1.Container) *strategies.Placement {
	return &strategies.Placement{
		Namespace: in.Namespace, Policy: in.Policy.Name, MPS: in.Policy.MPS, Pool: pool.Name, TrustDomain: pool.TrustDomain,
		Provider: pool.Provider(), Pod: &in.Pod.Spec, Container: container,
	}
}

func bestPool(in *Input, strategy *strategies.Strategy, site string, a want) (best placed, why *FitError) {
	for i := range in.Pools {
		pool := &in.Pools[i]
		if pool.Strategy != strategy.Name || pool.Site != site {
			continue
		}
		size, e := sizeOnPool(a, strategy, pool)
		if e != nil {
			if why == nil || e.moreSpecific(why) {
				why = e
			}
			continue
		}
		next := placed{want: a, pool: pool, share: pool.Share(size.slice), size: size}
		if best.pool == nil || wasteOf(next) < wasteOf(best) {
			best = next
		}
	}
	if best.pool == nil {
		return placed{}, why
	}
	return best, nil
}

// moreSpecific reports whether the error explains more than another why a site does not fit: a size more than a name
// that does not match, and of two the larger pool.
func (e *FitError) moreSpecific(than *FitError) bool {
	if named := e.kind == kindResource; named != (than.kind == kindResource) {
		return !named
	}
	return e.pool.Usable() > than.pool.Usable()
}

// wasteOf is the memory of the replica that the slice leaves unused. A device of unknown size comes last.
func wasteOf(p placed) quantity.MiB {
	usable := p.pool.Usable()
	switch {
	case usable == 0:
		return quantity.MaxMemory
	case p.pool.Sharing().Claims: // a claim wastes nothing, and small devices are to be filled first
		return usable - min(p.size.slice, usable)
	}
	return max(p.pool.Held(p.size.slice)-p.size.slice, 0)
}

// units is how many of the pool's resource the container requests.
func (p *placed) units() int64 {
	if p.size.granule == 0 {
		return p.request.GPUs
	}
	return p.pool.Units(p.size.slice)
}

// pool is the pool that stands for the candidate: its first container's.
func (c *candidate) pool() *pools.Pool { return c.containers[0].pool }

// lateness puts pools without a node last: a pod that goes there may wait forever.
func (c *candidate) lateness() int {
	if c.pool().Empty() {
		return 1
	}
	return 0
}

// countedAs returns the candidate with the larger share of a device, its own or another's, of each container.
func (c candidate) countedAs(other *candidate) *candidate {
	c.containers = slices.Clone(c.containers)
	for i := range c.containers {
		c.containers[i].share = max(c.containers[i].share, other.containers[i].share)
	}
	return &c
}

// equals reports whether another candidate of the strategy gives the pod the very same: resource names, sizes and enforcement.
func (c *candidate) equals(other *candidate) bool {
	if c.guard != other.guard { // its containers are the same on every node
		return false
	}
	for i := range c.containers {
		a, b := &c.containers[i], &other.containers[i]
		// A fraction of the device depends on its total.
		if a.pool.Offer() != b.pool.Offer() || a.pool.ClaimsShares != b.pool.ClaimsShares ||
			a.size != b.size || a.pool.MPSProvider != b.pool.MPSProvider ||
			a.dependsOnDevice() && a.pool.Total() != b.pool.Total() || !slices.Equal(a.tiers, b.tiers) {
			return false
		}
	}
	return true
}

// dependsOnDevice reports whether one of the container's settings was computed from the device's size. A claimed amount
// fits any device with room for it, unless a framework has to know its part of the device: of an instance it would be
// another.
func (p *placed) dependsOnDevice() bool {
	if p.pool.Sharing().Claims {
		return p.size.fromDevice || p.profile.Framework != "" && p.preferred.profile == ""
	}
	return p.size.fromDevice || p.pool.Total() > 0 // GPUSLICE_FRACTION and the frameworks' fractions
}
