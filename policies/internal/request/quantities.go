package request

import (
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// quantities are what a pod's containers request, as it is written.
type quantities struct {
	Spec struct {
		InitContainers      []containerQuantities `json:"initContainers"`
		Containers          []containerQuantities `json:"containers"`
		EphemeralContainers []containerQuantities `json:"ephemeralContainers"`
	} `json:"spec"`
}

type containerQuantities struct {
	Resources struct {
		Limits   map[string]any `json:"limits"`
		Requests map[string]any `json:"requests"`
	} `json:"resources"`
}

// CheckQuantities looks at the text of every resource quantity of the containers in a pod's JSON: "1e10000000" is short, valid
// and takes seconds to compare.
func CheckQuantities(raw []byte) (*api.Violation, error) {
	var p *quantities
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &p); err != nil {
		return nil, fmt.Errorf("read pod: %w", err)
	}
	if p == nil {
		return nil, errors.New("read pod: it is null")
	}
	for _, list := range []struct {
		name       string
		containers []containerQuantities
	}{{"initContainers", p.Spec.InitContainers}, {"containers", p.Spec.Containers}, {"ephemeralContainers", p.Spec.EphemeralContainers}} {
		for i, c := range list.containers {
			for _, of := range []struct {
				name string
				list map[string]any
			}{{"limits", c.Resources.Limits}, {"requests", c.Resources.Requests}} {
				for name, q := range of.list {
					text := quantity.Text(q)
					if len(text) > 2*quantity.MaxText || !quantity.Cheap.MatchString(text) {
						return Invalid("quantity", fmt.Sprintf("spec.%s[%d].resources.%s[%s]: %s is not a quantity that is read; "+
							`accepted: up to 40 characters such as "1", "500m" or "8Gi"`, list.name, i, of.name, message.Quote(name), message.Quote(text))), nil
					}
				}
			}
		}
	}
	return nil, nil
}
