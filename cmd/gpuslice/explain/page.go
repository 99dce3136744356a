package explain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/preview"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// page is a page for people, with the common parts of both kinds of explanation.
type page struct {
	cli.Page
	wide bool // like rows are not grouped
}

// pageOf explains each object, and then lists the pools that all of them had to choose from.
func pageOf(all *preview.Results, wide bool) *page {
	p := &page{wide: wide}
	for _, r := range all.Items {
		if r.HoldsPod() {
			p.result(r)
		}
	}
	if !p.Empty() {
		p.pools(clusters.PrintedPools(all.Cluster.Pools), all.Cluster.Resources)
	}
	return p
}

// result explains one decision.
func (p *page) result(r preview.Result) {
	if !p.Empty() {
		p.Line("")
	}
	d := r.Decision
	p.Line(r.String())
	p.Rows("  ", headline(r))
	for _, v := range d.Violations {
		p.Line("  denied because " + v.String())
	}
	for _, w := range d.Warnings {
		p.Line("  warning: " + w)
	}
	if d.Promise != nil {
		p.containers(d.Promise, d.Planned)
	}
	if d.Planned != nil {
		for _, note := range d.Planned.Notes {
			p.Line("  note: " + note)
		}
	}
	p.candidates(d.Candidates)
}

// headline is the first rows: the pod's outcome, its policy and its place.
func headline(r preview.Result) [][]string {
	d := r.Decision
	outcome := string(d.Outcome)
	if d.IfEnforced != d.Outcome {
		outcome += ", would be " + string(d.IfEnforced) + " under enforce"
	}
	if d.UnchangedReason != "" {
		outcome += " (" + d.UnchangedReason + ")"
	}
	rows := [][]string{{"outcome", outcome}}
	if d.Policy != "" {
		rows = append(rows, []string{"policy", d.Policy + " (" + string(d.Mode) + ")"})
	}
	if d.Planned != nil {
		rows = append(rows, []string{"strategy", string(d.Planned.Strategy)},
			[]string{"pool", d.Planned.Pool}, []string{"enforcement", string(d.Planned.Tier)})
	}
	if d.Promise != nil {
		if len(d.Promise.Pools) > 1 {
			rows = append(rows, []string{"as good", strings.Join(d.Promise.Pools[1:], ", ")})
		}
	}
	if r.Holding != nil {
		rows = append(rows, []string{"counts for", charge(*r.Holding)})
	}
	return append(rows, claimed(r.Claimed)...)
}

// claimed has a row for each way in which a pod claims GPUs.
func claimed(all []string) (rows [][]string) {
	for _, what := range all {
		rows = append(rows, []string{"claims", what})
	}
	return rows
}

func charge(h quota.Holding) string {
	memory := h.Charge.Memory.String()
	if h.MemoryUnknown {
		memory = "unknown"
	}
	return fmt.Sprintf("memory %s, slices %d, GPUs %d, devices %s", memory, h.Charge.Slices, h.Charge.GPUs, h.Charge.Devices)
}

// containers lists the slice of each container, and the edits of it.
func (p *page) containers(promised *promise.Promise, planned *promise.Planned) {
	rows := [][]string{{"CONTAINER", "RESOURCE", "SLICE", "LIMIT", "COMPUTE", "ENFORCEMENT", "FRAMEWORK"}}
	for _, c := range promised.Containers {
		row := []string{c.Name, strconv.FormatInt(c.Count, 10) + " " + cmp.Or(c.Resource, c.Template),
			cli.Amount(c.Slice), cli.Amount(c.Limit), "", "", ""}
		for _, q := range planned.Containers {
			if q.Name == c.Name {
				row[4], row[5], row[6] = cli.Percent(q.Compute), tiers(q.Tiers), q.Framework
			}
		}
		rows = append(rows, row)
	}
	p.section(rows)
	p.injected(promised, planned)
}

// injected lists caps, variables and mounts.
func (p *page) injected(promised *promise.Promise, planned *promise.Planned) {
	for _, c := range planned.Containers {
		if c.SizedBy != "" {
			p.Line("  " + c.Name + ": size: " + c.SizedBy)
		}
		if c.Cap != "" {
			p.Line("  " + c.Name + ": cap in force: " + c.Cap)
		}
	}
	for _, c := range promised.Containers {
		if c.Granular() {
			p.Line(fmt.Sprintf("  %s: takes %d of the device's %d parts of %s, %s more than its slice",
				c.Name, c.Count, c.Replicas, c.Granule, c.Rounding()))
		}
	}
	for _, c := range promised.Containers {
		var names []string
		for _, v := range c.Env {
			if names = append(names, v.Name); p.wide {
				p.Line("  " + c.Name + ": sets " + v.Name + "=" + v.Value)
			}
		}
		if len(names) > 0 && !p.wide {
			p.Line("  " + c.Name + ": sets " + strings.Join(names, ", "))
		}
		for _, m := range c.Mounts {
			p.Line("  " + c.Name + ": mounts " + m.Name + " on " + m.MountPath)
		}
	}
}

// candidates lists every way that was evaluated.
func (p *page) candidates(all []api.CandidateReport) {
	if !p.wide {
		p.rejected(all)
		return
	}
	rows := [][]string{{"  POOL", "STRATEGY", "RESOURCE", "SLICE", "ENFORCEMENT", "WHY"}}
	for _, c := range all {
		mark, why := "  ", c.Why
		if c.Chosen {
			mark, why = "> ", "chosen"
		}
		rows = append(rows, []string{mark + c.Pool, string(c.Strategy), c.Resource, c.Slice, string(c.Tier), why})
	}
	p.section(rows)
}

// section adds a table below an empty line, unless it has a header alone.
func (p *page) section(rows [][]string) {
	if len(rows) > 1 {
		p.Line("")
		p.Table("  ", rows)
	}
}

func tiers(all []api.Tier) string {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

// shownNodes are the nodes of a pool that are named.
const shownNodes = 3

// shownResources are the resources that are named where none is known as a GPU.
const shownResources = 5

// pools lists the known pools, whether or not a policy allows them; resources are all that nodes offer.
func (p *page) pools(pools []clusters.Pool, resources []string) {
	if len(pools) > 0 && !p.wide {
		return
	}
	p.Line("")
	switch {
	case len(pools) > 0:
	case len(resources) > 0:
		p.Line("no pool is known: nodes offer " + cli.First(shownResources, resources) + ", and no GPU by a known name; " +
			"GPUs by another name need a pool that the default policy declares")
		return
	default:
		p.Line("no pool is known: name nodes with GPUs with --nodes, or declare pools in the default policy")
		return
	}
	rows := [][]string{{"KNOWN POOL", "STRATEGY", "RESOURCE", "DEVICE", "MEMORY", "LARGEST SLICE", "REPLICAS", "NODES"}}
	var notes []string
	for _, known := range pools {
		rows = append(rows,
			[]string{known.Name, string(known.Strategy), known.Resource, known.Device, cli.Amount(known.DeviceMemory), cli.Amount(known.Usable),
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
