package doctor

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/freememory"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// checkWaitingClaims adds up what is free of each device, where pods wait for more than any has.
func checkWaitingClaims(f *Facts) []Finding {
	free := freememory.Of(f.Slices, f.Claims)
	found := newFinding(Note, "pods wait for more memory of one device than is free of any; free: %s", free).
		WithRemedy("wait until pods on a device end, delete some, or request less; gpuslice explain POD says it of one")
	for _, p := range f.WaitingPods {
		for _, t := range (policies.Input{Pod: p}).ClaimTemplates() {
			if requested := freememory.Requested(t); requested > free.Largest() {
				found = found.With(object("pod", p.Namespace, p.Name), "spec.resourceClaims", requested.Human()+" of a device requested")
			}
		}
	}
	return withEvidence(found)
}

// waiting reads the pods with a slice by claim that no node has, and where there are some what claims were given.
func (g *gatherer) waiting() error {
	if len(g.facts.Slices) == 0 {
		return nil
	}
	options := metav1.ListOptions{LabelSelector: api.LabelTier, FieldSelector: "spec.nodeName=,status.phase=Pending", Limit: podsPerPage}
	for {
		list, err := g.client.CoreV1().Pods(metav1.NamespaceAll).List(g.ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			if p := &list.Items[i]; p.Spec.NodeName == "" && len(policies.Input{Pod: p}.ClaimTemplates()) > 0 {
				g.facts.WaitingPods = append(g.facts.WaitingPods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, Spec: p.Spec})
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return g.given()
		}
	}
}

// given reads what claims were given, if a pod waits.
func (g *gatherer) given() error {
	if len(g.facts.WaitingPods) == 0 {
		return nil
	}
	list, err := g.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(g.ctx, metav1.ListOptions{})
	if err != nil {
		g.facts.WaitingPods = nil // what they wait for is not known
		return err
	}
	g.facts.Claims = list.Items
	return nil
}
