package config

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/document"
)

// maxReported bounds how many problems of a tenant's document a pod's author gets as warnings.
const maxReported = 3

// ParseTenant reads a tenant's own document as strictly as Parse reads the authority's, and fills in no defaults:
// omitted fields stay the authority's. Tighten checks whether it requests more than the authority's policy allows.
// Documents of more than MaxTenantDocument are denied before they are decoded.
func ParseTenant(name string, data []byte) (*Policy, field.ErrorList) {
	if len(data) > MaxTenantDocument {
		return nil, field.ErrorList{document.Problem(fmt.Sprintf("a tenant's own document has at most %d bytes", MaxTenantDocument))}
	}
	return parseDocument(name, data, func(p *Policy) field.ErrorList {
		whole := *p
		whole.setDefaults()
		if s := whole.DefaultSlice; s != nil && s.Class != "" {
			known := *s
			known.Class = api.ClassReplica // the authority's policy defines the classes
			whole.DefaultSlice = &known
		}
		return whole.validate()
	})
}

// TenantDocument is a tenant's own document as it was read. It is read-only and may be shared.
type TenantDocument struct {
	Name     string  // "namespace/configmap"
	Policy   *Policy // nil: it cannot be used
	Problems []error // why
}

// ReadTenantDocument reads a tenant's ConfigMap.
func ReadTenantDocument(m *corev1.ConfigMap) TenantDocument {
	policy, problems := ParseConfigMap(m, ParseTenant)
	return TenantDocument{Name: m.Namespace + "/" + m.Name, Policy: policy, Problems: problems}
}

// Tighten returns the policy in force in the document's namespace, and notes on the document for authors of its pods.
// An invalid one tightens nothing: it could only have narrowed the authority's policy, so that policy is safe without
// it.
func (d TenantDocument) Tighten(authority *Policy) (*Policy, []string) {
	if d.Policy == nil {
		return authority,
			[]string{fmt.Sprintf("%s cannot be used, and policy %s applies without it: %s", d.Name, authority.Name, first(d.Problems))}
	}
	tightened, clamped := tighten(authority, d.Policy)
	if len(clamped) == 0 {
		return tightened, nil
	}
	return tightened,
		[]string{fmt.Sprintf("%s requests more than policy %s allows, and there the policy applies: %s", d.Name, authority.Name, first(clamped))}
}

// first joins the first few of a list to one text.
func first[T any](all []T) string {
	var texts []string
	for _, e := range all[:min(len(all), maxReported)] {
		texts = append(texts, fmt.Sprint(e))
	}
	if rest := len(all) - maxReported; rest > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(texts, "; ")
}
