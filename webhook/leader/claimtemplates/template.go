package claimtemplates

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/claims"
)

// templateRef is a template by its name, which determines its content.
type templateRef struct{ namespace, name string }

// templateNamed is gpuslice's template of that name, as the namespace has to have it; nil: the name stands for none.
func templateNamed(namespace, name string) *resourcev1.ResourceClaimTemplate {
	t, err := claims.Parse(name)
	if err != nil {
		return nil
	}
	return t.Object(namespace)
}
