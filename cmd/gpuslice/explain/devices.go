package explain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/freememory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
	"github.com/gpuslice/gpuslice/policies"
)

// devices notes for a pod with slices by claim what is free of each device.
func (g *gatherer) devices() {
	templates := policies.Input{Pod: g.facts.pod}.ClaimTemplates()
	if len(templates) == 0 {
		return
	}
	published, err := g.client.ResourceV1().ResourceSlices().List(g.ctx, metav1.ListOptions{})
	if err != nil {
		g.note("free memory of devices is unknown: %v", err)
		return
	}
	claims, err := g.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(g.ctx, metav1.ListOptions{})
	if err != nil {
		g.note("free memory of devices is unknown, since claims of other namespaces may not be read: %v", err)
		return
	}
	free := freememory.Of(kube.Pointers(published.Items), claims.Items)
	for _, t := range templates {
		g.note("%s of a device requested; free: %s", freememory.Requested(t).Human(), free)
	}
}
