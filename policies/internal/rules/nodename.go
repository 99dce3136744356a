package rules

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// nodeName denies a node set by hand: it passes the scheduler, which counts the shares of every GPU. Controllers do not
// write it either; a DaemonSet's pods are placed by affinity.
var nodeName = Rule{Reason: "nodeName in a slice", Find: func(s Subject) []Part {
	if s.Pod.Spec.NodeName == "" {
		return nil
	}
	found := fmt.Sprintf("spec.nodeName is %s, which passes the scheduler by", message.Quote(s.Pod.Spec.NodeName))
	if operators(s.Pod) {
		found += "; if this is the GPU Operator's own pod, leave its namespace out, by the chart's value excludedNamespaces"
	}
	return []Part{{Field: "spec.nodeName", Text: found}}
}, Instead: "remove it, and write spec.nodeSelector: {kubernetes.io/hostname: ...} where it has to be that node"}

// operators reports whether a pod looks like one by which the GPU Operator validates a node. A tenant's can, so it decides words alone.
func operators(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool {
		return strings.HasPrefix(o.APIVersion, "nvidia.com/") && o.Kind == "ClusterPolicy"
	})
}
