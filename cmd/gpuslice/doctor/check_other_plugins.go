package doctor

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// annotationHAMi is written to a node by HAMi's device plugin, with the GPUs that it gives out.
const annotationHAMi = "hami.io/node-nvidia-register"

// checkOtherPlugins looks for nodes whose GPUs another system gives out.
func checkOtherPlugins(f *Facts) []Finding {
	found := newFinding(Warning,
		"HAMi's device plugin gives out the GPUs of these nodes: %s counts its shares there, and gpuslice plans nothing", api.ResourceGPU)
	for _, n := range f.Nodes {
		if hasHAMiPlugin(n) {
			found = found.With(object("node", "", n.Name), "metadata.annotations", annotationHAMi)
		}
	}
	return withEvidence(found.WithRemedy("declare no pool for them, and keep pods of governed namespaces away from them; " +
		"to give them to gpuslice, drain them and replace HAMi's device plugin by NVIDIA's"))
}

func hasHAMiPlugin(n *corev1.Node) bool { return n.Annotations[annotationHAMi] != "" }
