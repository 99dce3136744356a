package claimtemplates

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
)

// templateRef is a template by its name, which says all of it.
type templateRef struct{ namespace, name string }

// templateNamed is gpuslice's template of that name, as the namespace has to have it; nil: the name stands for none.
func templateNamed(namespace, name string) *resourcev1.ResourceClaimTemplate {
	claim := corev1.PodResourceClaim{ResourceClaimTemplateName: &name}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{claim}}}
	for _, t := range (policies.Input{Pod: pod}).ClaimTemplates() {
		return t
	}
	return nil
}
