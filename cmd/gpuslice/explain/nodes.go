package explain

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	podresources "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// unknownFree is how many replicas are free if other pods may not be read.
const unknownFree = -1

// candidateNodes lists the nodes with the resource of a pending pod, how many replicas are free there, and why the pod
// cannot run there all the same.
func candidateNodes(f *facts, promised *promise.Promise) []node {
	name := promised.Containers[0].Resource
	held := installed.Requested(f.others, name)
	out := []node{}
	for i := range f.nodes {
		n := &f.nodes[i]
		offered := installed.Count(n.Status.Allocatable, name)
		if offered == 0 {
			continue
		}
		free := int64(unknownFree)
		if f.othersRead {
			free = max(offered-held[n.Name], 0)
		}
		out = append(out, node{Name: n.Name, Resource: name, Offered: offered, Free: free, Reason: unfit(f.pod, n)})
	}
	return out
}

// unfit is why a pod cannot run on a node whatever is free; "": it can.
func unfit(p *corev1.Pod, n *corev1.Node) string {
	if n.Spec.Unschedulable {
		return "the node is cordoned"
	}
	if match, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); err != nil || !match {
		return "the pod's node selector or affinity excludes it"
	}
	taint, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(),
		n.Spec.Taints, p.Spec.Tolerations, func(t *corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		}, false)
	if untolerated {
		return "the pod does not tolerate " + taint.ToString()
	}
	if guarded := limits.GuardedResource; installed.Count(podresources.PodRequests(p, podresources.PodResourcesOptions{}), guarded) >
		installed.Count(n.Status.Allocatable, guarded) {
		return "no agent enforces there: see the node's pod of the DaemonSet gpuslice-agent"
	}
	return ""
}

// hasRoom reports whether so many replicas are free on a node on which the pod can run, or may be.
func hasRoom(nodes []node, replicas int64) bool {
	return slices.ContainsFunc(nodes, func(n node) bool {
		return n.Reason == "" && (n.Free == unknownFree || n.Free >= replicas)
	})
}
