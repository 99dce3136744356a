package plan

import (
	"cmp"
	"fmt"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// charge is the charge of one placed container.
func (p *placed) charge(s *strategies.Strategy) quota.Charge {
	return accounting.OfSlice(s.Whole(), max(p.size.slice, p.preferred.memory),
		p.request.GPUs, max(p.share, p.preferred.share).Times(p.units()))
}

// podCharge is the charge of a placed pod.
func podCharge(c *candidate) quota.Charge {
	return c.peak(func(p *placed) quota.Charge { return p.charge(c.strategy) })
}

// parts is how many parts of one device the pod takes.
func (c *candidate) parts() int64 {
	return c.peak(func(p *placed) quota.Charge { return quota.Charge{Slices: p.units()} }).Slices
}

// peak is the most that the containers come to while they run. Claims are held as long as the pod lives.
func (c *candidate) peak(of func(*placed) quota.Charge) quota.Charge {
	spans := make([]accounting.Span, len(c.containers))
	for i := range c.containers {
		p := &c.containers[i]
		spans[i] = accounting.Span{Charge: of(p), Init: p.init && !c.strategy.Claims, Sidecar: p.sidecar}
	}
	return accounting.Peak(spans)
}

// smallestSlice is the smallest that a container with so many GPUs may request.
func smallestSlice(p *config.Policy, gpus int64) quantity.MiB {
	return cmp.Or(p.Limits.MinMemory, p.Allowance(gpus))
}

// tooSmall is the denial of a requested size that no process fits: the CUDA context alone takes more.
func tooSmall(p *config.Policy, c *placed) *api.Violation {
	requested := c.resolved.Memory
	if !c.resolved.Fraction.Zero() { // the device makes it an amount
		requested = c.size.slice
	}
	least, why := smallestSlice(p, c.request.GPUs), "the CUDA context of a process alone takes about that"
	if p.Limits.MinMemory > 0 {
		why = "policy " + p.Name + " sets limits.minMemory"
	}
	if requested == 0 || requested >= least {
		return nil
	}
	return &api.Violation{Rule: api.RuleLimit, Reason: "below the smallest slice", Detail: fmt.Sprintf(
		"container %q requests %s; write %s: %q or more: %s", c.request.Name, requested, api.LabelMemory, least, why)}
}

// overLimits holds a placement against policy's limits for a container and for a pod.
func overLimits(in *Input, c *candidate) *api.Violation {
	p := in.Policy
	for i := range c.containers {
		one := &c.containers[i]
		if v := tooSmall(p, one); v != nil {
			return v
		}
		if v := accounting.ExceedsBurst(one.size.slice, one.size.limit, p, one.request.Name); v != nil {
			return v
		}
		if v := accounting.Exceeds(one.charge(c.strategy), p.Limits.PerContainer,
			fmt.Sprintf("container %q", one.request.Name), p.Name, c.pool().Describe,
			func() string { return smaller(in, c, c.containers[i:i+1], p.Limits.PerContainer) }); v != nil {
			return v
		}
	}
	return accounting.Exceeds(podCharge(c), p.Limits.PerPod, "the pod", p.Name, c.pool().Describe,
		func() string { return smaller(in, c, c.containers, p.Limits.PerPod) })
}

// asked is the requested amount of memory; 0: a replica, or of a device of unknown size.
func (p *placed) asked() quantity.MiB {
	if p.resolved.Fraction.Zero() {
		return p.resolved.Memory
	}
	return p.pool.Part(p.resolved.Fraction)
}

// smaller is the remedy for containers that hold more than the limit. Where they request less than that, and what they would get is a
// whole device or an instance, it names a size for which there is something smaller.
func smaller(in *Input, c *candidate, over []placed, limit quota.Charge) string {
	larger := -1
	for i := range over {
		if p := &over[i]; p.request.GPUs == 1 && p.asked() > 0 && p.asked() < p.size.slice {
			larger = i
		}
	}
	asked := candidate{strategy: c.strategy, containers: over}
	sum := asked.peak(func(p *placed) quota.Charge { return quota.Charge{Memory: p.asked()} }).Memory
	if larger < 0 || limit.Memory > 0 && sum > limit.Memory { // not even exactly what they request would be within the limit
		return accounting.RequestLess()
	}
	p := &over[larger]
	text := "it requests "
	if len(over) > 1 {
		text = fmt.Sprintf("container %q requests ", p.request.Name)
	}
	fit := FitError{requested: p.asked(), fraction: p.resolved.Fraction}
	text += fit.size() + ", and nothing of that size is within the limit: "
	if fit.pool = largestWithin(in, p.asked(), limit); fit.pool != nil {
		return text + fit.most()
	}
	return text + "an administrator raises it, or shares GPUs in smaller parts"
}

// largestWithin is the pool with the largest slices that are smaller than an amount, and within a limit; nil: none.
func largestWithin(in *Input, below quantity.MiB, limit quota.Charge) (best *pools.Pool) {
	for i := range in.Pools {
		p := &in.Pools[i]
		usable := p.Usable()
		reached, _ := p.Reach(in.Pod, in.Policy.Pod.Tolerations)
		if usable == 0 || usable >= below || !reached || p.Empty() || !in.Policy.Allows(p.Strategy) || p.Sharing().Whole() ||
			best != nil && usable <= best.Usable() {
			continue
		}
		if accounting.Exceeds(accounting.OfSlice(false, usable, 1, p.Share(usable)), limit, "", "", p.Describe, accounting.RequestLess) == nil {
			best = p
		}
	}
	return best
}
