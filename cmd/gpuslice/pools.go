package main

import (
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// poolPrinted is a pool as explain prints it.
type poolPrinted struct {
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

func poolsPrinted(pools []pools.Pool) []poolPrinted {
	printed := []poolPrinted{}
	for i := range pools {
		p := &pools[i]
		out := poolPrinted{
			Name: p.Name, Strategy: p.Strategy, Resource: p.Resource, Device: p.Product, DeviceMemory: p.DeviceMemory,
			Usable: p.Usable(), Replicas: p.Replicas, Nodes: []string{}, Notes: listOf(p.Notes),
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

// pools lists the pools that are known, those too that no policy considers.
func (p *page) pools(pools []poolPrinted) {
	p.line("")
	if len(pools) == 0 {
		p.line("no pool is known: give --nodes, or declare pools in the default policy")
		return
	}
	rows := [][]string{{"KNOWN POOL", "STRATEGY", "RESOURCE", "DEVICE", "MEMORY", "LARGEST SLICE", "REPLICAS", "NODES"}}
	var notes []string
	for _, pool := range pools {
		rows = append(rows, []string{pool.Name, string(pool.Strategy), pool.Resource, pool.Device, amount(pool.DeviceMemory), amount(pool.Usable),
			strconv.Itoa(pool.Replicas), few(pool.Nodes)})
		for _, note := range pool.Notes {
			notes = append(notes, pool.Name+": "+note)
		}
	}
	p.table("", rows)
	for _, note := range notes {
		p.line(note)
	}
}

// few lists the first names and says how many more there are.
func few(names []string) string {
	const shown = 3
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:shown], ", ") + " and " + strconv.Itoa(len(names)-shown) + " more"
}
