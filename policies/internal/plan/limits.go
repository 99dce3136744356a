package plan

import (
	"cmp"
	"fmt"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/charges"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/rulename"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// charge is what one placed container counts for.
func (p *placed) charge(s *strategies.Strategy) quota.Charge {
	return charges.OfSlice(s.Whole(), p.size.slice, p.request.GPUs, p.share.Times(p.units()))
}

// podCharge is what a placed pod counts for.
func podCharge(c *candidate) quota.Charge {
	return c.peak(func(p *placed) quota.Charge { return p.charge(c.strategy) })
}

// parts is how many parts of one device the pod takes.
func (c *candidate) parts() int64 {
	return c.peak(func(p *placed) quota.Charge { return quota.Charge{Slices: p.units()} }).Slices
}

// peak is the most that the containers come to while they run.
func (c *candidate) peak(of func(*placed) quota.Charge) quota.Charge {
	spans := make([]charges.Span, len(c.containers))
	for i := range c.containers {
		p := &c.containers[i]
		spans[i] = charges.Span{Charge: of(p), Init: p.init, Sidecar: p.sidecar()}
	}
	return charges.Peak(spans)
}

// sidecar reports whether the container is an init container that goes on running.
func (a *want) sidecar() bool {
	return a.init && podspec.IsSidecar(a.spec)
}

// Exceeds holds a charge against a limit; 0 is no limit. where names the pool. Memory that is not known cannot be shown to be within one.
func Exceeds(charge, limit quota.Charge, who, policy string, where func() string) *api.Violation {
	tell := func(requested, most any, what string) *api.Violation {
		return &api.Violation{Rule: rulename.Limit, Reason: "above the limit", Detail: fmt.Sprintf("%s would hold %v %s on %s, policy %s allows %v; request less", who, requested, what, where(), policy, most)}
	}
	switch {
	case limit.Memory > 0 && charge.Memory == 0:
		return &api.Violation{Rule: rulename.Limit, Reason: "memory unknown under a limit", Detail: fmt.Sprintf(
			"%s: the device memory of %s is unknown, so policy %s's limit of %s cannot be held; write %s", who, where(), policy, limit.Memory, api.LabelMemory)}
	case limit.Memory > 0 && charge.Memory > limit.Memory:
		return tell(charge.Memory, limit.Memory, "of GPU memory")
	case limit.Slices > 0 && charge.Slices > limit.Slices:
		return tell(charge.Slices, limit.Slices, "slices")
	case limit.GPUs > 0 && charge.GPUs > limit.GPUs:
		return tell(charge.GPUs, limit.GPUs, "GPUs")
	case limit.Devices > 0 && charge.Devices > limit.Devices:
		return tell(charge.Devices, limit.Devices, "devices")
	}
	return nil
}

// Sizes is how large a container's slice is, and the most that it may reach.
type Sizes struct{ Slice, Limit quantity.MiB }

// ExceedsBurst holds the most that a container may reach against policy's limits.
func (s Sizes) ExceedsBurst(p *config.Policy, container string) *api.Violation {
	most := cmp.Or(p.Limits.MemoryLimit, p.Limits.PerContainer.Memory)
	text := fmt.Sprintf("policy %s allows %s", p.Name, most)
	if ratio := quantity.MiB(p.Limits.MaxLimitRequestRatio); ratio > 0 && (most == 0 || s.Slice*ratio < most) {
		most = s.Slice * ratio
		text = fmt.Sprintf("policy %s allows %d times the slice of %s, %s", p.Name, ratio, s.Slice, most)
	}
	if most == 0 || s.Limit <= max(most, s.Slice) {
		return nil
	}
	return &api.Violation{Rule: rulename.Limit, Reason: "memory-limit above the limit", Detail: fmt.Sprintf(
		"container %q may reach %s, %s; write %s: %q or less", container, s.Limit, text, api.LabelMemoryLimit, max(most, s.Slice))}
}

// tooSmall is the denial of a requested size that no process fits: the CUDA context alone takes more.
func tooSmall(p *config.Policy, c *placed) *api.Violation {
	requested := c.resolved.Memory
	if !c.resolved.Fraction.Zero() {
		requested = c.size.slice
	}
	least, why := p.Allowance(c.request.GPUs), "the CUDA context of a process alone takes about that"
	if p.Limits.MinMemory > 0 {
		least, why = p.Limits.MinMemory, "policy "+p.Name+" sets limits.minMemory"
	}
	if requested == 0 || requested >= least {
		return nil
	}
	return &api.Violation{Rule: rulename.Limit, Reason: "below the smallest slice", Detail: fmt.Sprintf(
		"container %q requests %s; write %s: %q or more: %s", c.request.Name, requested, api.LabelMemory, least, why)}
}

// overLimits holds a placement against policy's limits for a container and for a pod.
func overLimits(p *config.Policy, c *candidate) *api.Violation {
	for i := range c.containers {
		one := &c.containers[i]
		if v := tooSmall(p, one); v != nil {
			return v
		}
		if v := (Sizes{one.size.slice, one.size.limit}).ExceedsBurst(p, one.request.Name); v != nil {
			return v
		}
		charge := c.containers[i].charge(c.strategy)
		if v := Exceeds(charge, p.Limits.PerContainer, fmt.Sprintf("container %q", c.containers[i].request.Name), p.Name, c.pool().Describe); v != nil {
			return v
		}
	}
	return Exceeds(podCharge(c), p.Limits.PerPod, "the pod", p.Name, c.pool().Describe)
}
