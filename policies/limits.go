package policies

import "fmt"

// charge is what one placed container counts for.
func (p *placed) charge(s *Strategy) Charge {
	return sliceCharge(s.Whole(), p.size.slice, p.request.GPUs)
}

// podCharge is what a placed pod counts for.
func podCharge(c *candidate) Charge {
	spans := make([]span, len(c.containers))
	for i := range c.containers {
		p := &c.containers[i]
		spans[i] = span{p.charge(c.strategy), p.init, p.sidecar()}
	}
	return peakCharge(spans)
}

// sidecar reports whether the container is an init container that goes on running.
func (a *asked) sidecar() bool {
	return a.init && runsOn(a.spec)
}

// exceeds holds a charge against a limit; 0 is no limit. where names the pool. Memory that is not known cannot be shown to be within one.
func exceeds(charge, limit Charge, who, policy string, where func() string) *Violation {
	tell := func(asked, most any, what string) *Violation {
		return &Violation{RuleLimit, "above the limit", fmt.Sprintf("%s would hold %v %s on %s, policy %s allows %v; ask for less", who, asked, what, where(), policy, most)}
	}
	switch {
	case limit.Memory > 0 && charge.Memory == 0:
		return &Violation{RuleLimit, "memory unknown under a limit", fmt.Sprintf(
			"%s: the device memory of %s is unknown, so policy %s's limit of %s cannot be held; write %s", who, where(), policy, limit.Memory, LabelMemory)}
	case limit.Memory > 0 && charge.Memory > limit.Memory:
		return tell(charge.Memory, limit.Memory, "of GPU memory")
	case limit.Slices > 0 && charge.Slices > limit.Slices:
		return tell(charge.Slices, limit.Slices, "slices")
	case limit.GPUs > 0 && charge.GPUs > limit.GPUs:
		return tell(charge.GPUs, limit.GPUs, "GPUs")
	}
	return nil
}

// overLimits holds a placement against policy's limits for a container and for a pod.
func overLimits(p *Policy, c *candidate) *Violation {
	for i := range c.containers {
		charge := c.containers[i].charge(c.strategy)
		if v := exceeds(charge, p.Limits.PerContainer, fmt.Sprintf("container %q", c.containers[i].request.Name), p.Name, c.pool().describe); v != nil {
			return v
		}
	}
	return exceeds(podCharge(c), p.Limits.PerPod, "the pod", p.Name, c.pool().describe)
}
