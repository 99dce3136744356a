package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/proposal"
)

// barWidth is how many cells the longest bar has.
const barWidth = 40

// pageOf is the plan for people.
func pageOf(p *document) *cli.Page {
	page := &cli.Page{}
	d := p.Devices
	if !p.Applied {
		page.Line("No node changes, because more pods would wait on the nodes that are there. The numbers show what the plan would need.")
	}
	page.Linef("%d GPUs are there. The pods need %d as they are divided today, %d with this plan, and at least %d.",
		d.Total, d.Today, d.Planned, d.LowerBound)
	page.Rows("", bars(d))
	page.Linef("%d of %d pods wait on these nodes today, %d with this plan.", p.Waiting.Before, p.Demand.Pods, p.Waiting.After)
	if c := p.Cost; c != nil {
		page.Linef("An hour costs %.2f today and %.2f with this plan: %.2f less.", c.Today, c.Planned, c.Freed)
	}
	page.Line("")
	wasted(page, &p.Waste)
	page.Line("")
	rows := [][]string{{"LAYOUT", "PODS", "GPUS NEEDED", "NODES", "GPUS OF NODES"}}
	for _, l := range p.Layouts {
		rows = append(rows, []string{layoutText(string(l.Strategy), l.Replicas, l.Profiles),
			strconv.Itoa(l.Pods), strconv.Itoa(l.Devices), cli.Count(int64(l.Nodes)), strconv.Itoa(l.NodeDevices)})
	}
	page.Table("", rows)
	page.Line("")
	rows = [][]string{{"NODE GROUP", "GPUS EACH", "LEAST NODES", "MOST NODES"}}
	for _, g := range p.Groups {
		rows = append(rows, []string{g.Model + ", " + layoutText(string(g.Strategy), g.Replicas, nil),
			strconv.Itoa(g.Devices), strconv.Itoa(g.Least), strconv.Itoa(g.Most)})
	}
	page.Table("", rows)
	page.Line("")
	rows = [][]string{{"IN COMPARISON", "GPUS NEEDED", "AT LEAST"}}
	for _, c := range p.Comparison {
		rows = append(rows, []string{c.Layout, strconv.Itoa(c.Devices), strconv.Itoa(c.LowerBound)})
	}
	page.Table("", rows)
	for _, u := range p.Unplaced {
		page.Linef("%s fits nowhere: %s", strings.TrimPrefix(u.Namespace+"/"+u.Name, "/"), u.Reason)
	}
	for _, note := range p.Notes {
		page.Line(note)
	}
	return page
}

// wasted lists the parts of GPUs that do nothing, by cause.
func wasted(page *cli.Page, w *proposal.Waste) {
	one := func(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }
	page.Table("", [][]string{
		{"WASTE (GPUS)", "TODAY", "WITH THIS PLAN"},
		{"rounding to a replica or instance", one(w.Today.Rounding), one(w.Planned.Rounding)},
		{"stranded: free parts of GPUs with pods", one(w.Today.Stranded), one(w.Planned.Stranded)},
	})
	if w.Today.StrandedGiB+w.Planned.StrandedGiB > 0 {
		page.Linef("Stranded GPU memory: %.0f GiB today, %.0f GiB with this plan.", w.Today.StrandedGiB, w.Planned.StrandedGiB)
	}
	if w.Idle+w.HardlyUsed > 0 {
		page.Linef("Of the GPUs held today, %s are idle, and %s are whole GPUs that are hardly used.", one(w.Idle), one(w.HardlyUsed))
	}
}

func bars(d proposal.Devices) (rows [][]string) {
	longest := max(d.Total, d.Today, d.Planned, 1)
	for _, b := range []struct {
		name string
		n    int
	}{{"there", d.Total}, {"today", d.Today}, {"plan", d.Planned}, {"bound", d.LowerBound}} {
		rows = append(rows,
			[]string{"  " + b.name, "[" + fmt.Sprintf("%-*s", barWidth, strings.Repeat("#", b.n*barWidth/longest)) + "]", strconv.Itoa(b.n)})
	}
	return rows
}

// layoutText names a layout of a device.
func layoutText(strategy string, replicas int, profiles map[string]int) string {
	if replicas > 1 {
		return fmt.Sprintf("%s, %d replicas", strategy, replicas)
	}
	for _, profile := range slices.Sorted(maps.Keys(profiles)) {
		strategy += fmt.Sprintf(" %dx%s", profiles[profile], profile)
	}
	return strategy
}
