package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// maxCharge bounds every dimension, so that sums of charges cannot overflow.
const maxCharge = 1 << 40

// charge is what one placed container counts for. Whole devices count as gpus, shares of one as slices.
func (p *placed) charge(s *Strategy) Charge {
	c := Charge{Memory: MiB(saturate(int64(p.size.slice), p.request.GPUs))}
	if s.Name == "exclusive" {
		c.GPUs = p.request.GPUs
	} else {
		c.Slices = p.request.GPUs
	}
	return c
}

// podCharge adds the containers up as Kubernetes adds requests: what runs at once is added, and an init container that
// ends before the next one starts counts only where it is the largest. Sidecars run on beside all that follow them.
func podCharge(c *candidate) Charge {
	var running, sidecars, peak Charge
	for i := range c.containers {
		p := &c.containers[i]
		charge := p.charge(c.strategy)
		switch {
		case !p.init:
			running = running.plus(charge)
		case p.sidecar():
			sidecars = sidecars.plus(charge)
			peak = peak.most(sidecars)
		default:
			peak = peak.most(sidecars.plus(charge))
		}
	}
	return peak.most(running.plus(sidecars))
}

// sidecar says that the container is an init container that goes on running.
func (a *asked) sidecar() bool {
	return a.init && a.spec.RestartPolicy != nil && *a.spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func (c Charge) plus(d Charge) Charge {
	return Charge{MiB(saturateSum(int64(c.Memory), int64(d.Memory))), saturateSum(c.Slices, d.Slices), saturateSum(c.GPUs, d.GPUs)}
}

func (c Charge) most(d Charge) Charge {
	return Charge{max(c.Memory, d.Memory), max(c.Slices, d.Slices), max(c.GPUs, d.GPUs)}
}

func saturate(a, b int64) int64 {
	if a > 0 && b > maxCharge/a {
		return maxCharge
	}
	return a * b
}

func saturateSum(a, b int64) int64 { return min(a+b, maxCharge) }

// exceeds holds a charge against a limit; 0 is no limit. Memory that is not known cannot be shown to be within one.
func exceeds(charge, limit Charge, who, policy string, pool *Pool) *Violation {
	tell := func(asked, most any, what string) *Violation {
		return &Violation{RuleLimit, "above the limit", fmt.Sprintf("%s would hold %v %s on %s, policy %s allows %v; ask for less", who, asked, what, pool.describe(), policy, most)}
	}
	switch {
	case limit.Memory > 0 && charge.Memory == 0:
		return &Violation{RuleLimit, "memory unknown under a limit", fmt.Sprintf(
			"%s: the device memory of %s is unknown, so policy %s's limit of %s cannot be held; write %s", who, pool.describe(), policy, limit.Memory, LabelMemory)}
	case limit.Memory > 0 && charge.Memory > limit.Memory:
		return tell(charge.Memory, limit.Memory, "of GPU memory")
	case limit.Slices > 0 && charge.Slices > limit.Slices:
		return tell(charge.Slices, limit.Slices, "slices")
	case limit.GPUs > 0 && charge.GPUs > limit.GPUs:
		return tell(charge.GPUs, limit.GPUs, "GPUs")
	}
	return nil
}
