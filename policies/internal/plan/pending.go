package plan

import (
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// pending places a pod that no known pool can take now although the list of pools is not complete: on a pool yet to
// come, of which only the resource name is known, and which promises nothing. Else it returns why the pod is denied.
func pending(in *Input, req api.Request, wants []want, unfit []*FitError) (*candidate, []api.Violation) {
	name, resource := awaitedOffer(in, req, unfit)
	if resource == "" || mayLand(in, resource) {
		return nil, denials(in, unfit)
	}
	strategy := *strategies.Named(name)
	strategy.Tier = api.TierNone // whatever comes under the resource's name
	pool := &pools.Pool{Resource: resource, Strategy: name}
	pool.Await()
	if strategy.MPS {
		pool.MPSProvider = strategies.ProviderLabeled(strategies.LabelsDiscovery).Name
	}
	c := &candidate{strategy: &strategy}
	for _, a := range wants {
		size, e := sizeOnPool(a, &strategy, pool)
		if e != nil && e.kind != kindUnknownDevice { // an awaited device has no size yet
			e.pool = pool
			return nil, denials(in, append(unfit, e))
		}
		c.containers = append(c.containers, placed{want: a, pool: pool, size: size})
	}
	c, v := evaluate(in, req, c)
	if v != nil {
		return nil, []api.Violation{*v}
	}
	return c, nil
}

// awaitedOffer is the strategy and the resource name of the pool to wait for: those of a known pool that the pod cannot
// reach, else the preferred strategy's name. An empty name: there is nothing to wait for.
func awaitedOffer(in *Input, req api.Request, unfit []*FitError) (api.StrategyName, string) {
	// Where a rule denies, its remedy lets the pod run now.
	if in.PoolsComplete || slices.ContainsFunc(unfit, func(e *FitError) bool { return e.kind == kindRule }) {
		return "", ""
	}
	if i := slices.IndexFunc(unfit, func(e *FitError) bool { return e.kind == kindReach }); i >= 0 {
		return unfit[i].pool.Strategy, unfit[i].pool.Resource
	}
	if slices.ContainsFunc(unfit, func(e *FitError) bool { return e.kind != kindStrategy }) {
		return "", ""
	}
	name := in.Policy.Strategies[0]
	if req.Strategy != "" {
		name = req.Strategy
	}
	return name, strategies.Named(name).Await
}

// mayLand reports whether a known pool offers the resource to the pod. It was not chosen, so a pod that waits for the
// resource would run where its slice does not fit or is unknown.
func mayLand(in *Input, resource string) bool {
	return slices.ContainsFunc(in.Pools, func(p pools.Pool) bool {
		ok, _ := p.Reach(in.Pod, in.Policy.Pod.Tolerations)
		return ok && p.Resource == resource
	})
}
