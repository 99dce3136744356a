package pools

import corev1 "k8s.io/api/core/v1"

// OfferOf returns the offer that a node's labels describe under the resource, at this time: a Pool without a name,
// nodes or site. Its Strategy is "" if they are silent or contradict each other, its driver 0 if they are silent.
func OfferOf(node *corev1.Node, resource string) Pool { return readOffer(node, resource) }
