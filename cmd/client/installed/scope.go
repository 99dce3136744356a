package installed

import (
	"context"
	"maps"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/kube"
)

// webhookOfPods is the webhook by which pods get slices.
const webhookOfPods = "pods.gpuslice.dev"

// Scope is the namespaces for whose pods the API server calls the webhook.
type Scope struct {
	selector labels.Selector
	system   string
}

// ScopeOf is the scope of the installation among webhook configurations, or of the manifests if none is installed.
func ScopeOf(configurations []*admissionv1.MutatingWebhookConfiguration, system string) Scope {
	for _, c := range configurations {
		for _, w := range c.Webhooks {
			if c.Labels["app.kubernetes.io/name"] != "gpuslice" || w.Name != webhookOfPods {
				continue
			}
			if selector, err := metav1.LabelSelectorAsSelector(w.NamespaceSelector); err == nil && w.NamespaceSelector != nil {
				return Scope{selector, system}
			}
		}
	}
	selector, _ := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: defaultExclusions(),
	}}}) // valid: a test compares it with the manifest
	return Scope{selector, system}
}

// ReadScope reads the scope of the installation in a cluster.
func ReadScope(ctx context.Context, client kubernetes.Interface, system string) (Scope, error) {
	all, err := kube.Read[*admissionv1.MutatingWebhookConfiguration](ctx, "webhook configurations",
		client.AdmissionregistrationV1().MutatingWebhookConfigurations().List, metav1.ListOptions{LabelSelector: Selector})
	return ScopeOf(all, system), err
}

// defaultExclusions are the namespaces that the manifests leave out, beside the installation's own.
func defaultExclusions() []string {
	return []string{"kube-system", "kube-public", "kube-node-lease", "gpu-operator", "nvidia-device-plugin"}
}

// Includes reports whether pods of a namespace are in scope.
func (s Scope) Includes(name string, of map[string]string) bool {
	all := labels.Set(maps.Clone(of))
	if all == nil {
		all = labels.Set{}
	}
	all[corev1.LabelMetadataName] = name // the API server sets it; a file may lack it
	return name != s.system && s.selector.Matches(all)
}
