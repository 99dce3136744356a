package clusters

import (
	"slices"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Pool is a pool as it is printed.
type Pool struct {
	Name         string           `json:"name"`
	Strategy     api.StrategyName `json:"strategy"`
	Resource     string           `json:"resource"`
	Device       string           `json:"device,omitempty"`
	DeviceMemory api.MiB          `json:"deviceMemory,omitzero"`
	Usable       api.MiB          `json:"usable,omitzero"` // the largest slice
	Replicas     int              `json:"replicas,omitempty"`
	Nodes        []string         `json:"nodes"`
	Notes        []string         `json:"notes"`
	ByClass      bool             `json:"-"` // a device class offers it, and no node counts it
}

// PrintedPools are pools as they are printed.
func PrintedPools(offered []pools.Pool) []Pool {
	printed := []Pool{}
	for i := range offered {
		p := &offered[i]
		out := Pool{
			Name: p.Name, Strategy: p.Strategy, Resource: p.Offer(), Device: p.Product, DeviceMemory: p.DeviceMemory,
			Usable: p.Usable(), Replicas: p.Replicas, Nodes: []string{}, Notes: cli.NonNil(p.Notes),
			ByClass: p.DeviceClass != "",
		}
		if p.Remembered() {
			out.Notes = append(slices.Clone(out.Notes),
				"remembered: no node has offered it since "+p.LastSeen.Format(time.RFC3339)+"; used only where no pool with nodes fits")
		}
		if p.Empty() && !p.Remembered() {
			out.Notes = append(slices.Clone(out.Notes), "no node offers it now; used only where no pool with nodes fits")
		}
		for _, n := range p.Nodes {
			for _, named := range n.Named {
				out.Nodes = append(out.Nodes, named.Name)
			}
		}
		printed = append(printed, out)
	}
	return printed
}
