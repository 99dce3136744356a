package config

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
)

// minimumSpec is the weakest tier of a slice: a tier alone, or a mapping.
type minimumSpec struct {
	Tier   api.Tier `json:"tier"`
	Proven bool     `json:"proven,omitempty"` // by gpuslice verify --on-gpu, on the pool as it is
}

// Alone is the field that may stand for the mapping.
func (m *minimumSpec) Alone() any { return &m.Tier }

// MarshalJSON writes the form that people write.
func (m minimumSpec) MarshalJSON() ([]byte, error) {
	if !m.Proven {
		return json.Marshal(m.Tier)
	}
	type mapping minimumSpec
	return json.Marshal(mapping(m))
}

func (m minimumSpec) validate(e *problems, at *field.Path) {
	switch {
	case m == minimumSpec{}:
	case m.Proven && (m.Tier == "" || m.Tier == api.TierNone):
		e.add(field.Required(at.Child("tier"), "the tier that has to be proven; none needs no proof"))
	default:
		oneOf(e, at, m.Tier, api.Tiers())
	}
}
