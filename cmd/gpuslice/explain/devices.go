package explain

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/client/freememory"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/policies/claims"
)

// devices notes the free memory of each device for a pod with slices by claim.
func (g *gatherer) devices() {
	templates := claims.Named(g.facts.pod)
	if len(templates) == 0 {
		return
	}
	published, err := kube.Listed[*resourcev1.ResourceSlice](g.client.ResourceV1().ResourceSlices().List(g.ctx, metav1.ListOptions{}))
	if err != nil {
		g.note("free memory of devices is unknown: %v", err)
		return
	}
	made, err := g.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(g.ctx, metav1.ListOptions{})
	if err != nil {
		g.note("free memory of devices is unknown, since claims of other namespaces may not be read: %v", err)
		return
	}
	free := freememory.Of(published, made.Items)
	for _, t := range templates {
		g.note("%s of a device requested; free: %s", freememory.Requested(t).Human(), free)
	}
}
