package explain

import (
	"strconv"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target"
)

// shownNodes are the nodes of a pool that are named.
const shownNodes = 3

// pools lists the known pools, whether or not a policy allows them.
func (p *page) pools(pools []target.Pool) {
	if len(pools) > 0 && !p.wide {
		return
	}
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
