package config

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Place classifies a policy ConfigMap by its location. The zero Place decides nothing.
type Place struct {
	Authority bool // in the system namespace, labelled: it governs
	Tenant    bool // a tenant's own document: it tightens the policy of its namespace
}

// PlaceOf classifies a ConfigMap, with policies governing from the namespace system. For one that is meant to be a
// policy, by its label, name or key, but decides nothing, why is the reason.
func PlaceOf(m *corev1.ConfigMap, system string) (place Place, why string) {
	mark, marked := m.Labels[api.LabelPolicy]
	_, holds := m.Data[api.PolicyKey]
	switch {
	case m.Namespace == system && mark == "true":
		return Place{Authority: true}, ""
	case m.Namespace != system && m.Name == api.TenantPolicyName:
		return Place{Tenant: true}, ""
	case !marked && !holds && m.Name != api.TenantPolicyName:
		return Place{}, ""
	case m.Namespace == system:
		return Place{}, fmt.Sprintf(`the label %s: "true" is missing: nothing is decided by it`, api.LabelPolicy)
	}
	return Place{}, fmt.Sprintf(
		"it lies in namespace %s, and policies govern from namespace %s: nothing is decided by it (a tenant's own document is called %s)",
		m.Namespace, system, api.TenantPolicyName)
}

// parseFunc is Parse or ParseTenant.
type parseFunc func(name string, data []byte) (*Policy, field.ErrorList)

// ParseConfigMap reads the one document of a policy ConfigMap and reports every problem with its path in the object. A
// ConfigMap with problems gives no Policy.
func ParseConfigMap(m *corev1.ConfigMap, parse parseFunc) (*Policy, []error) {
	text, ok := m.Data[api.PolicyKey]
	if !ok {
		return nil, []error{fmt.Errorf("data: the key %s is missing", api.PolicyKey)}
	}
	var problems []error
	if len(m.Data)+len(m.BinaryData) > 1 {
		problems = append(problems, fmt.Errorf("data: there are keys beside %s, and nothing reads them", api.PolicyKey))
	}
	p, found := parse(m.Namespace+"/"+m.Name, []byte(text))
	for _, problem := range found {
		problems = append(problems, fmt.Errorf("data[%s]: %w", api.PolicyKey, problem))
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return p, nil
}
