package policies

import corev1 "k8s.io/api/core/v1"

// maxCharge bounds every dimension, so that sums of charges cannot overflow. Memory is bounded by maxMemory, which is
// less, so that every sum can be printed and read back.
const maxCharge = 1 << 40

// sliceCharge is what a container counts for that holds a slice on each of so many GPUs. Whole devices count as gpus,
// shares of one as slices.
func sliceCharge(whole bool, slice MiB, gpus int64) Charge {
	c := Charge{Memory: memoryOf(slice, gpus)}
	if whole {
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

// runsOn reports whether an init container goes on running beside those that follow it.
func runsOn(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
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

// Charge is what a container or pod counts for: the dimensions of limits and quota.
type Charge struct {
	Memory MiB   `json:"memory,omitzero"` // slices x GPUs
	Slices int64 `json:"slices,omitempty"`
	GPUs   int64 `json:"gpus,omitempty"` // whole devices
}

// plausible reports whether a recorded charge is one that planning could have written.
func (c Charge) plausible() bool { return c.bounded() && c.Slices+c.GPUs > 0 }

// bounded reports whether no dimension is negative or beyond what sums can hold.
func (c Charge) bounded() bool {
	for _, d := range Dimensions() {
		if n := d.Amount(c); n < 0 || n > maxCharge {
			return false
		}
	}
	return c.Memory <= maxMemory
}
