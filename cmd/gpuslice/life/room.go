package life

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresources "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/gpuslice/gpuslice/policies/promise"
)

// unknownFree is how many replicas are free where pods of others may not be seen.
const unknownFree = -1

// room lists the nodes that offer what a waiting pod asks for, how many replicas are free there, and why the pod cannot
// go there all the same.
func room(f *Facts, promise *promise.Promise) []Node {
	name := promise.Containers[0].Resource
	held := map[string]int64{}
	for i := range f.Others {
		requests := podresources.PodRequests(&f.Others[i], podresources.PodResourcesOptions{})
		held[f.Others[i].Spec.NodeName] += count(requests, name)
	}
	out := []Node{}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		offered := count(n.Status.Allocatable, name)
		if offered == 0 {
			continue
		}
		free := int64(unknownFree)
		if f.OthersSeen {
			free = max(offered-held[n.Name], 0)
		}
		out = append(out, Node{Name: n.Name, Resource: name, Offered: offered, Free: free, But: barred(f.Pod, n)})
	}
	return out
}

// barred says why a pod cannot go to a node whatever is free; "": it can.
func barred(p *corev1.Pod, n *corev1.Node) string {
	if n.Spec.Unschedulable {
		return "it is cordoned"
	}
	if match, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); err != nil || !match {
		return "the pod's node selector or affinity leaves it out"
	}
	taint, left := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
	if left {
		return "the pod does not tolerate " + taint.ToString()
	}
	return ""
}

// fitting is how many replicas are free where the pod can go; what is not known counts as one.
func fitting(nodes []Node) (free int64) {
	for _, n := range nodes {
		if n.But == "" && n.Free != 0 {
			free += max(n.Free, 1)
		}
	}
	return free
}

func count(list corev1.ResourceList, name string) int64 {
	q, ok := list[corev1.ResourceName(name)]
	if !ok {
		q = resource.Quantity{}
	}
	return q.Value()
}
