package explain

import (
	"slices"
	"strconv"
	"time"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// pool is a pool as it is printed.
type pool struct {
	Name         string           `json:"name"`
	Strategy     api.StrategyName `json:"strategy"`
	Resource     string           `json:"resource"`
	Device       string           `json:"device,omitempty"`
	DeviceMemory api.MiB          `json:"deviceMemory,omitzero"`
	Usable       api.MiB          `json:"usable,omitzero"` // the largest slice
	Replicas     int              `json:"replicas,omitempty"`
	Nodes        []string         `json:"nodes"`
	Notes        []string         `json:"notes"`
}

func poolsOf(pools []pools.Pool) []pool {
	printed := []pool{}
	for i := range pools {
		p := &pools[i]
		out := pool{
			Name: p.Name, Strategy: p.Strategy, Resource: p.Resource, Device: p.Product, DeviceMemory: p.DeviceMemory,
			Usable: p.Usable(), Replicas: p.Replicas, Nodes: []string{}, Notes: cli.NonNil(p.Notes),
		}
		if p.Remembered() {
			out.Notes = append(slices.Clone(out.Notes), "remembered: no node has offered it since "+p.LastSeen.Format(time.RFC3339)+"; used only where no pool with nodes fits")
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

// shownNodes are the nodes of a pool that are named.
const shownNodes = 3

// pools lists the known pools, whether or not a policy allows them.
func (p *page) pools(pools []pool) {
	p.Line("")
	if len(pools) == 0 {
		p.Line("no pool is known: name nodes with --nodes, or declare pools in the default policy")
		return
	}
	rows := [][]string{{"KNOWN POOL", "STRATEGY", "RESOURCE", "DEVICE", "MEMORY", "LARGEST SLICE", "REPLICAS", "NODES"}}
	var notes []string
	for _, known := range pools {
		rows = append(rows, []string{known.Name, string(known.Strategy), known.Resource, known.Device, cli.Amount(known.DeviceMemory), cli.Amount(known.Usable),
			strconv.Itoa(known.Replicas), cli.First(shownNodes, known.Nodes)})
		for _, note := range known.Notes {
			notes = append(notes, known.Name+": "+note)
		}
	}
	p.Table("", rows)
	for _, note := range notes {
		p.Line(note)
	}
}
