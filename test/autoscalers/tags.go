package autoscalers

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TagPrefix begins the tags of an Auto Scaling group that Cluster Autoscaler reads.
const TagPrefix = "k8s.io/cluster-autoscaler/node-template/"

// TaggedNode is the node that Cluster Autoscaler builds from tags, without what the instance type adds.
func TaggedNode(tags map[string]string) (*corev1.Node, error) {
	node := &corev1.Node{}
	node.Labels, node.Status.Capacity = map[string]string{}, corev1.ResourceList{}
	for tag, value := range tags {
		kind, name, _ := strings.Cut(strings.TrimPrefix(tag, TagPrefix), "/")
		switch kind {
		case "label":
			node.Labels[name] = value
		case "taint":
			of, effect, _ := strings.Cut(value, ":")
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: name, Value: of, Effect: corev1.TaintEffect(effect)})
		case "resources":
			amount, err := resource.ParseQuantity(value)
			if err != nil {
				return nil, fmt.Errorf("read tag %s: %w", tag, err)
			}
			node.Status.Capacity[corev1.ResourceName(name)] = amount
		default:
			return nil, fmt.Errorf("read tag %s: no label, taint or resource", tag)
		}
	}
	return node, nil
}
