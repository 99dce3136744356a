package config

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
)

// minimumSpec is the weakest tier of a slice: a tier alone, or a mapping, as earlier builds wrote it.
type minimumSpec struct {
	Tier api.Tier `json:"tier"`
}

// Alone is the field that may stand for the mapping.
func (m *minimumSpec) Alone() any { return &m.Tier }

// MarshalJSON writes the form that people write.
func (m minimumSpec) MarshalJSON() ([]byte, error) { return json.Marshal(m.Tier) }

func (m minimumSpec) validate(e *problems, at *field.Path) {
	if m.Tier != "" {
		oneOf(e, at, m.Tier, api.Tiers())
	}
}
