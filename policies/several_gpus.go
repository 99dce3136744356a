package policies

import (
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// severalGPUs decides a pod that requests several whole GPUs and nothing else: it is left as it is if policy allows
// exclusive devices, and denied if not, or if it would get shares of one device instead.
func (c *creation) severalGPUs() Decision {
	in, req := &c.in, c.req
	if req.Explicit {
		return Decision{}
	}
	var total, most int64
	name := ""
	for _, r := range req.Containers {
		total += r.GPUs
		if r.GPUs > max(most, 1) && r.Resource == api.ResourceGPU {
			name, most = r.Name, r.GPUs
		}
	}
	if name == "" {
		return Decision{}
	}
	at := request.ResourceField("limits", api.ResourceGPU)
	if !slices.ContainsFunc(in.Policy.Strategies, func(name api.StrategyName) bool { return strategies.Named(name).Whole() }) {
		return denial(api.Violation{Rule: api.RulePolicy, Reason: "several GPUs",
			Container: name, Field: at, Detail: fmt.Sprintf(
				"container %q requests %d GPUs, and policy %s allows %s only, which give one slice to a container; request one",
				name, most, in.Policy.Name, message.JoinNames(in.Policy.Strategies))})
	}
	whole, shared := offersOfGPU(in)
	if whole == nil && shared != nil {
		return denial(api.Violation{Rule: api.RuleStrategy, Reason: "several units of a shared GPU",
			Container: name, Field: at, Detail: fmt.Sprintf(
				"container %q requests %d of %s, and under that name %s offers shares of one (%s); two of them may be the same device and give no more than one; request one",
				name, most, api.ResourceGPU, shared.Describe(), shared.Strategy)})
	}
	for _, limited := range []struct {
		requested, limit int64
		who              string
	}{{most, in.Policy.Limits.PerContainer.GPUs, fmt.Sprintf("container %q", name)}, {total, in.Policy.Limits.PerPod.GPUs, "the pod"}} {
		if limited.limit > 0 && limited.requested > limited.limit {
			return denial(api.Violation{Rule: api.RuleLimit, Reason: "above the limit",
				Container: name, Field: at, Detail: fmt.Sprintf(
					"%s would hold %d GPUs, policy %s allows %d; request less", limited.who, limited.requested, in.Policy.Name, limited.limit)})
		}
	}
	d := leaveUnchanged(whyExclusive)
	d.Warnings = append(request.Ranks(in.Pod, in.Pools), request.Unoffered(in.Pod, in.Pools, in.Resources, in.Policy.Strategies)...)
	if shared != nil {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%s offers shares of a GPU as %s too; add %s: %s to be kept on whole devices",
			shared.Describe(), api.ResourceGPU, api.LabelStrategy, strategies.OfUnit(strategies.UnitDevice).Name))
	}
	return d
}

// offersOfGPU returns a pool that gives the pod devices or instances of its own under the plain name, and one that gives
// it shares of one; nil where there is none that it can reach.
func offersOfGPU(in *Input) (whole, shared *pools.Pool) {
	for i := range in.Pools {
		p := &in.Pools[i]
		if p.Resource != api.ResourceGPU {
			continue
		}
		if ok, _ := p.Reach(in.Pod, in.Policy.Pod.Tolerations); !ok {
			continue
		}
		if p.Sharing().Shared() {
			shared = p
		} else {
			whole = p
		}
	}
	return whole, shared
}
