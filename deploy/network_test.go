package deploy_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

func TestNetworkPolicy(t *testing.T) {
	t.Parallel()
	// The ports are the container's, and ingress is from anywhere: API servers are no pods.
	t.Run("admits what is served", func(t *testing.T) {
		t.Parallel()
		p := every[*networkingv1.NetworkPolicy](t)[0]
		template := every[*appsv1.Deployment](t)[0].Spec.Template
		for key, value := range p.Spec.PodSelector.MatchLabels {
			if template.Labels[key] != value {
				t.Errorf("it selects %s=%s, which no replica is", key, value)
			}
		}
		var open []string
		for _, rule := range p.Spec.Ingress {
			if len(rule.From) > 0 {
				t.Errorf("it lets in only %v", rule.From)
			}
			for _, port := range rule.Ports {
				open = append(open, port.Port.StrVal)
			}
		}
		for _, port := range template.Spec.Containers[0].Ports {
			if !slices.Contains(open, port.Name) || port.Protocol != corev1.ProtocolTCP {
				t.Errorf("port %s is not let in: %q are", port.Name, open)
			}
		}
		if slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			t.Error("it limits egress by guess: the API server's address is not known here")
		}
	})
}
