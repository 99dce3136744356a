package spellings

import (
	"strconv"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// gke reads the node selectors by which pods share a GPU there. They stay: the scheduler needs them.
func gke() Spelling {
	return Spelling{
		Name: "gke", System: "GKE", Doc: "cloud.google.com/gke-max-shared-clients-per-gpu: 4 means a fourth of one GPU",
		Selectors: map[string]reading{
			"cloud.google.com/gke-max-shared-clients-per-gpu": func(v value, into *collected) error {
				n, err := v.whole("clients", quantity.MaxFractions)
				if err != nil {
					return err
				}
				into.Size.Fraction, err = quantity.ParseFraction("1/" + strconv.FormatInt(n, 10))
				return err
			},
			"cloud.google.com/gke-gpu-sharing-strategy": strategy("time-sharing, mps", map[string]api.StrategyName{
				"time-sharing": "time-slicing", "mps": "mps"}),
		},
	}
}
