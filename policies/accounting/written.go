package accounting

import (
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// WrittenQuotaName is the name of each ResourceQuota that gpuslice writes.
const WrittenQuotaName = "gpuslice"

// WrittenQuota is the ResourceQuota that a policy wants in each namespace that it governs.
type WrittenQuota struct {
	Resource string
	Hard     int64
	// Why is the reason that none can be written although policy wants one; then the other fields are empty.
	Why string
}

// WrittenQuotaOf is the ResourceQuota that the policy wants written; false: none. A policy that denies nothing wants
// none: Kubernetes would deny by it. All the pools that the policy allows must offer one resource, since the quota
// could not distinguish the sources of a slice.
func WrittenQuotaOf(p *config.Policy, pools []pools.Pool) (WrittenQuota, bool) {
	if p.Quota.Native != modes.NativeWrite || p.Off() || p.EnforcementMode != api.EnforceFull {
		return WrittenQuota{}, false
	}
	limit, kind := p.Quota.Slices, "slices"
	if limit == nil {
		limit, kind = p.Quota.GPUs, "gpus"
	}
	var names []string
	for i := range pools {
		pool := &pools[i]
		if !p.Allows(pool.Strategy) {
			continue
		}
		if whole := pool.Sharing().Whole(); whole != (kind == "gpus") {
			return WrittenQuota{
				Why: fmt.Sprintf("the limit is in %s, and policy allows %s, which is %s; allow only strategies that are counted in %s",
					kind, pool.Describe(), pool.Strategy, kind)}, true
		}
		if pool.Sharing().Claims {
			return WrittenQuota{Why: fmt.Sprintf("slices on %s are claims, which a ResourceQuota counts by their class; the limit holds without one",
				pool.Describe())}, true
		}
		if pool.Granular {
			return WrittenQuota{
				Why: fmt.Sprintf("a slice on %s takes several of %s, which a ResourceQuota would count each; the limit holds without one",
					pool.Describe(), pool.Resource)}, true
		}
		names = append(names, pool.Resource)
	}
	slices.Sort(names)
	switch names = slices.Compact(names); len(names) {
	case 0:
		return WrittenQuota{Why: "no pool that policy allows is known"}, true
	case 1:
		return WrittenQuota{Resource: names[0], Hard: *limit}, true
	}
	return WrittenQuota{Why: fmt.Sprintf("the pools that policy allows offer %s, and a ResourceQuota counts one; allow fewer strategies",
		message.JoinNames(names[:min(len(names), 6)]))}, true
}
