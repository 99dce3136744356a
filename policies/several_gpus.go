package policies

import (
	"fmt"
	"slices"
)

// severalGPUs answers a pod that asks for several whole GPUs and says nothing else: it is left as it is where policy
// allows exclusive devices, and refused where it does not, or where it would get shares of one device instead.
func (c *creation) severalGPUs() Decision {
	in, req := &c.in, c.req
	if req.Explicit {
		return Decision{}
	}
	var total, most int64
	name := ""
	for _, r := range req.Containers {
		total += r.GPUs
		if r.GPUs > max(most, 1) && r.Resource == ResourceGPU {
			name, most = r.Name, r.GPUs
		}
	}
	if name == "" {
		return Decision{}
	}
	if !allowsWhole(in.Policy) {
		return deny(Violation{RulePolicy, "several GPUs", fmt.Sprintf(
			"container %q asks for %d GPUs, and policy %s allows %s only, which give one slice to a container; ask for one",
			name, most, in.Policy.Name, joinNames(in.Policy.Strategies))})
	}
	whole, shared := offersOfGPU(in)
	if whole == nil && shared != nil {
		return deny(Violation{RuleStrategy, "several units of a shared GPU", fmt.Sprintf(
			"container %q asks for %d of %s, and under that name %s offers shares of one (%s); two of them may be the same device and give no more than one; ask for one",
			name, most, ResourceGPU, shared.describe(), shared.Strategy)})
	}
	for _, limited := range []struct {
		asked, limit int64
		who          string
	}{{most, in.Policy.Limits.PerContainer.GPUs, fmt.Sprintf("container %q", name)}, {total, in.Policy.Limits.PerPod.GPUs, "the pod"}} {
		if limited.limit > 0 && limited.asked > limited.limit {
			return deny(Violation{RuleLimit, "above the limit", fmt.Sprintf(
				"%s would hold %d GPUs, policy %s allows %d; ask for less", limited.who, limited.asked, in.Policy.Name, limited.limit)})
		}
	}
	d := leaveAlone(whyExclusive)
	if shared != nil {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%s offers shares of a GPU as %s too; add %s: %s to be kept on whole devices",
			shared.describe(), ResourceGPU, LabelStrategy, strategyOfUnit(UnitDevice).Name))
	}
	return d
}

// allowsWhole reports whether policy allows a strategy that gives whole devices.
func allowsWhole(p *Policy) bool {
	return slices.ContainsFunc(p.Strategies, func(name StrategyName) bool { return strategyNamed(name).Whole() })
}

// offersOfGPU returns a pool that gives the pod devices or instances of its own under the plain name, and one that gives
// it shares of one; nil where there is none that it can reach.
func offersOfGPU(in *Input) (whole, shared *Pool) {
	for i := range in.Pools {
		p := &in.Pools[i]
		if p.Resource != ResourceGPU {
			continue
		}
		if ok, _ := p.reach(in.Pod, in.Policy.Pod.Tolerations); !ok {
			continue
		}
		if p.sharing().Shared() {
			shared = p
		} else {
			whole = p
		}
	}
	return whole, shared
}
