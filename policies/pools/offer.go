package pools

import corev1 "k8s.io/api/core/v1"

// OfferOf is what a node's labels say, at this time, that it offers under the resource: a Pool without a name, nodes or
// site. Its Strategy is "" where they do not tell or contradict each other, its driver 0 where they do not tell.
func OfferOf(node *corev1.Node, resource string) Pool { return readOffer(node, resource) }
