package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/proposal"
)

// cost is money for an hour of the devices needed, in the unit of --price.
type cost struct {
	Today   float64 `json:"today"`
	Planned float64 `json:"planned"`
	Freed   float64 `json:"freed"`
}

// cost is nil without prices, or where a model that pods need has none: a note names it.
func (o *options) cost(p *proposal.Plan) *cost {
	if len(o.price) == 0 {
		return nil
	}
	var c cost
	for _, model := range slices.Sorted(maps.Keys(p.Models)) {
		m := p.Models[model]
		amount, by := o.price.Of(model, func(name string) bool { return named(model, name) })
		if by == "" {
			p.Notes = append(p.Notes, fmt.Sprintf("no price: model %s; there is no cost without it", model))
			return nil
		}
		c.Today, c.Planned = c.Today+amount*float64(m.Today), c.Planned+amount*float64(m.Planned)
	}
	c.Freed = c.Today - c.Planned
	return &c
}
