package accounting

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// Span is the charge of one container while it runs.
type Span struct {
	Charge        quota.Charge
	Init, Sidecar bool
}

// Peak adds containers up as Kubernetes adds requests: containers that run at once are added, and an init container
// that ends before the next one starts counts only if it is the largest. Sidecars keep running beside all later
// containers. Init containers come first, in their order.
func Peak(spans []Span) quota.Charge {
	var running, sidecars, peak quota.Charge
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

// spansOf charges every container of a pod, those of ours included.
func spansOf(spec *corev1.PodSpec, charge func(*corev1.Container) quota.Charge) []Span {
	var spans []Span
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		spans = append(spans, Span{charge(c), true, podspec.IsSidecar(c)})
	}
	for i := range spec.Containers {
		spans = append(spans, Span{Charge: charge(&spec.Containers[i])})
	}
	return spans
}
