package quota

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// MaxCharge bounds every dimension, so that sums of charges cannot overflow. Memory is bounded by MaxMemory, which is
// less, so that every sum can be printed and read back.
const MaxCharge = 1 << 40

// SliceCharge is what a container counts for that holds a slice on each of so many GPUs. Whole devices count as gpus,
// shares of one as slices.
func SliceCharge(whole bool, slice quantity.MiB, gpus int64) Charge {
	c := Charge{Memory: MemoryOf(slice, gpus)}
	if whole {
		c.GPUs = gpus
	} else {
		c.Slices = gpus
	}
	return c
}

// Span is what one container counts for while it runs.
type Span struct {
	Charge        Charge
	Init, Sidecar bool
}

// PeakCharge adds containers up as Kubernetes adds requests: what runs at once is added, and an init container that
// ends before the next one starts counts only where it is the largest. Sidecars run on beside all that follow them.
// Init containers come first, in their order.
func PeakCharge(spans []Span) Charge {
	var running, sidecars, peak Charge
	for _, s := range spans {
		switch {
		case !s.Init:
			running = running.Plus(s.Charge)
		case s.Sidecar:
			sidecars = sidecars.Plus(s.Charge)
			peak = peak.Most(sidecars)
		default:
			peak = peak.Most(sidecars.Plus(s.Charge))
		}
	}
	return peak.Most(running.Plus(sidecars))
}

// PodSpans charges every container of a pod, those of ours included.
func PodSpans(spec *corev1.PodSpec, charge func(*corev1.Container) Charge) []Span {
	var spans []Span
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		spans = append(spans, Span{charge(c), true, IsSidecar(c)})
	}
	for i := range spec.Containers {
		spans = append(spans, Span{Charge: charge(&spec.Containers[i])})
	}
	return spans
}

// IsSidecar reports whether an init container goes on running beside those that follow it.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// Plus is c and d together, each dimension saturating far below an overflow.
func (c Charge) Plus(d Charge) Charge {
	return Charge{min(quantity.MiB(saturateSum(int64(c.Memory), int64(d.Memory))), quantity.MaxMemory), saturateSum(c.Slices, d.Slices), saturateSum(c.GPUs, d.GPUs)}
}

// Most is the larger of c and d in each dimension.
func (c Charge) Most(d Charge) Charge {
	return Charge{max(c.Memory, d.Memory), max(c.Slices, d.Slices), max(c.GPUs, d.GPUs)}
}

// MemoryOf is slice x gpus, at most what a quantity of memory can say.
func MemoryOf(slice quantity.MiB, gpus int64) quantity.MiB {
	return min(quantity.MiB(saturate(int64(slice), gpus)), quantity.MaxMemory)
}

func saturate(a, b int64) int64 {
	if a > 0 && b > MaxCharge/a {
		return MaxCharge
	}
	return a * b
}

func saturateSum(a, b int64) int64 { return min(a+b, MaxCharge) }

// Charge is what a container or pod counts for: the dimensions of limits and quota.
type Charge struct {
	Memory quantity.MiB `json:"memory,omitzero"` // slices x GPUs
	Slices int64        `json:"slices,omitempty"`
	GPUs   int64        `json:"gpus,omitempty"` // whole devices
}

// Plausible reports whether a recorded charge is one that planning could have written.
func (c Charge) Plausible() bool { return c.bounded() && c.Slices+c.GPUs > 0 }

// bounded reports whether no dimension is negative or beyond what sums can hold.
func (c Charge) bounded() bool {
	for _, d := range Dimensions() {
		if n := d.Amount(c); n < 0 || n > MaxCharge {
			return false
		}
	}
	return c.Memory <= quantity.MaxMemory
}
