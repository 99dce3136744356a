package doctor

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/cmd/client/freememory"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
)

// checkWaitingClaims adds up the free memory of each device, if pods wait for more than any has.
func checkWaitingClaims(f *Facts) []Finding {
	free := freememory.Of(f.Slices, f.Claims)
	found := newFinding(Note, "pods wait for more memory of one device than is free of any; free: %s", free).
		WithRemedy("wait until pods on a device end, delete some, or request less; gpuslice explain POD shows one pod")
	allocated := allocatedClaims(f.Claims)
	for _, p := range f.WaitingPods {
		if hasClaim(p, allocated) {
			continue
		}
		for _, t := range claims.Named(p) {
			if requested := freememory.Requested(t); requested > free.Largest() {
				found = found.With(object("pod", p.Namespace, p.Name), "spec.resourceClaims", requested.Human()+" of a device requested")
			}
		}
	}
	return withEvidence(found)
}

// allocatedClaims are the claims that were given a device.
func allocatedClaims(claimed []resourcev1.ResourceClaim) map[types.NamespacedName]bool {
	out := map[types.NamespacedName]bool{}
	for _, c := range claimed {
		out[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = c.Status.Allocation != nil
	}
	return out
}

// hasClaim reports whether each claim of a pod's templates has a device: only its binding to a node is left.
func hasClaim(p *corev1.Pod, allocated map[types.NamespacedName]bool) bool {
	missing := 0
	for _, c := range p.Spec.ResourceClaims {
		if c.ResourceClaimTemplateName != nil {
			missing++
		}
	}
	for _, s := range p.Status.ResourceClaimStatuses {
		if s.ResourceClaimName != nil && allocated[types.NamespacedName{Namespace: p.Namespace, Name: *s.ResourceClaimName}] {
			missing--
		}
	}
	return missing == 0
}

// waiting reads the pods with a slice by claim that no node has, and if there are some, the allocations of claims.
func (g *gatherer) waiting() error {
	if len(g.facts.Slices) == 0 {
		return nil
	}
	options := metav1.ListOptions{LabelSelector: api.LabelTier, FieldSelector: "spec.nodeName=,status.phase=Pending"}
	_, err := kube.EachPod(g.ctx, g.client.CoreV1().Pods(metav1.NamespaceAll), options, func(p *corev1.Pod) {
		if p.Spec.NodeName == "" && len(p.Spec.SchedulingGates) == 0 && len(claims.Named(p)) > 0 {
			g.facts.WaitingPods = append(g.facts.WaitingPods,
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, Spec: p.Spec,
					Status: corev1.PodStatus{ResourceClaimStatuses: p.Status.ResourceClaimStatuses}})
		}
	})
	if err != nil || len(g.facts.WaitingPods) == 0 {
		return err
	}
	list, err := g.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(g.ctx, metav1.ListOptions{})
	if err != nil {
		g.facts.WaitingPods = nil // the claims they wait for are unknown
		return err
	}
	g.facts.Claims = list.Items
	return nil
}
