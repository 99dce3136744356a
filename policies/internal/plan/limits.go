package plan

import (
	"cmp"
	"fmt"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
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
	if !c.resolved.Fraction.Zero() {
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
func overLimits(p *config.Policy, c *candidate) *api.Violation {
	for i := range c.containers {
		one := &c.containers[i]
		if v := tooSmall(p, one); v != nil {
			return v
		}
		if v := accounting.ExceedsBurst(one.size.slice, one.size.limit, p, one.request.Name); v != nil {
			return v
		}
		if v := accounting.Exceeds(one.charge(c.strategy), p.Limits.PerContainer,
			fmt.Sprintf("container %q", one.request.Name), p.Name, c.pool().Describe); v != nil {
			return v
		}
	}
	return accounting.Exceeds(podCharge(c), p.Limits.PerPod, "the pod", p.Name, c.pool().Describe)
}
