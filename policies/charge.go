package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// maxCharge bounds every dimension, so that sums of charges cannot overflow. Memory is bounded by maxMemory, which is
// less, so that every sum can be printed and read back.
const maxCharge = 1 << 40

// charge is what one placed container counts for.
func (p *placed) charge(s *Strategy) Charge { return sliceCharge(s, p.size.slice, p.request.GPUs) }

// sliceCharge is what a container counts for that holds a slice on each of so many GPUs. Whole devices count as gpus,
// shares of one as slices.
func sliceCharge(strategy *Strategy, slice MiB, gpus int64) Charge {
	c := Charge{Memory: memoryOf(slice, gpus)}
	if strategy.Whole() {
		c.GPUs = gpus
	} else {
		c.Slices = gpus
	}
	return c
}

// span is what one container counts for while it runs.
type span struct {
	charge        Charge
	init, sidecar bool
}

// peakCharge adds containers up as Kubernetes adds requests: what runs at once is added, and an init container that
// ends before the next one starts counts only where it is the largest. Sidecars run on beside all that follow them.
// Init containers come first, in their order.
func peakCharge(spans []span) Charge {
	var running, sidecars, peak Charge
	for _, s := range spans {
		switch {
		case !s.init:
			running = running.Plus(s.charge)
		case s.sidecar:
			sidecars = sidecars.Plus(s.charge)
			peak = peak.Most(sidecars)
		default:
			peak = peak.Most(sidecars.Plus(s.charge))
		}
	}
	return peak.Most(running.Plus(sidecars))
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

// podSpans charges every container of a pod, those of ours included.
func podSpans(spec *corev1.PodSpec, charge func(*corev1.Container) Charge) []span {
	var spans []span
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		spans = append(spans, span{charge(c), true, runsOn(c)})
	}
	for i := range spec.Containers {
		spans = append(spans, span{charge: charge(&spec.Containers[i])})
	}
	return spans
}

// runsOn says that an init container goes on running beside those that follow it.
func runsOn(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// sidecar says that the container is an init container that goes on running.
func (a *asked) sidecar() bool {
	return a.init && runsOn(a.spec)
}

// Plus is c and d together, each dimension saturating far below an overflow.
func (c Charge) Plus(d Charge) Charge {
	return Charge{min(MiB(saturateSum(int64(c.Memory), int64(d.Memory))), maxMemory), saturateSum(c.Slices, d.Slices), saturateSum(c.GPUs, d.GPUs)}
}

// Most is the larger of c and d in each dimension.
func (c Charge) Most(d Charge) Charge {
	return Charge{max(c.Memory, d.Memory), max(c.Slices, d.Slices), max(c.GPUs, d.GPUs)}
}

// memoryOf is slice x gpus, at most what a quantity of memory can say.
func memoryOf(slice MiB, gpus int64) MiB { return min(MiB(saturate(int64(slice), gpus)), maxMemory) }

func saturate(a, b int64) int64 {
	if a > 0 && b > maxCharge/a {
		return maxCharge
	}
	return a * b
}

func saturateSum(a, b int64) int64 { return min(a+b, maxCharge) }

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
