package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// statusPage shows all that is known of an object.
func statusPage(l status, wide bool) *page {
	p := &page{wide: wide}
	p.Line(l.Object.String())
	text := string(l.State)
	if l.Node != "" {
		text += " on node " + l.Node
	}
	rows := [][]string{{"state", text}}
	if l.Requested != nil {
		rows = append(rows, []string{"requested", requested(l.Requested)})
	}
	if g := l.Given; g != nil {
		rows = append(rows, []string{"policy", g.Policy}, []string{"strategy", string(g.Strategy)}, []string{"pool", strings.Join(g.Pools, ", ")},
			[]string{"counts for", charge(l.holding)}, []string{"planned", string(g.Planned.Tier)})
	}
	rows = append(rows, claimed(l.Claimed)...)
	if o := l.Observed; o != nil {
		rows = append(rows, []string{"observed", strings.TrimSpace(string(o.State) + " " + string(o.Tier))})
	}
	p.Rows("  ", rows)
	for _, reason := range l.Reasons {
		p.Line("  because " + cli.OneLine(reason))
	}
	if l.Given != nil {
		p.containers(&promise.Promise{Containers: l.Given.Containers}, &l.Given.Planned)
		for _, note := range l.Given.Planned.Notes {
			p.Line("  note: " + note)
		}
	}
	p.nodes(l.Nodes)
	p.pods(l.Pods)
	p.events(l.Events)
	for _, note := range l.Notes {
		p.Line("note: " + note)
	}
	return p
}

// requested is a pod's request, before it was rewritten.
func requested(r *api.Request) string {
	var all []string
	for _, c := range r.Containers {
		text := c.Name + ":"
		if c.Resource != "" {
			text += fmt.Sprintf(" %d %s", c.GPUs, c.Resource)
		}
		fraction := ""
		if !c.Size.Fraction.Zero() {
			fraction = c.Size.Fraction.String()
		}
		for _, part := range [][2]string{
			{"memory ", cli.Amount(c.Size.Memory)}, {"up to ", cli.Amount(c.Size.MemoryLimit)}, {"fraction ", fraction},
			{"class ", c.Size.Class}, {"compute ", cli.Percent(c.Size.Compute)},
		} {
			if part[1] != "" {
				text += ", " + part[0] + part[1]
			}
		}
		all = append(all, text)
	}
	if !r.Explicit {
		all = append(all, "no slice: the policy gives one")
	}
	return strings.Join(all, "; ")
}

func (p *page) nodes(nodes []node) {
	if !p.wide {
		nodes = groupNamed(nodes, func(n *node) *string { return &n.Name })
	}
	rows := [][]string{{"NODE", "RESOURCE", "OFFERED", "FREE", "REASON"}}
	for _, n := range nodes {
		free := "?"
		if n.Free >= 0 {
			free = strconv.FormatInt(n.Free, 10)
		}
		rows = append(rows, []string{n.Name, n.Resource, strconv.FormatInt(n.Offered, 10), free, n.Reason})
	}
	p.section(rows)
}

func (p *page) pods(pods []podRow) {
	if !p.wide {
		pods = groupNamed(pods, func(r *podRow) *string { return &r.Name })
	}
	rows := [][]string{{"POD", "STATE", "SLICE", "ENFORCEMENT"}}
	for _, s := range pods {
		rows = append(rows, []string{s.Name, string(s.State), s.Slice, s.Enforcement})
	}
	p.section(rows)
}

func (p *page) events(events []event) {
	if !p.wide {
		events = groupEvents(events)
	}
	rows := [][]string{{"LAST SEEN", "TIMES", "FROM", "REASON", "ABOUT", "TEXT"}}
	for _, e := range events {
		rows = append(rows, []string{e.At.UTC().Format(time.DateTime), strconv.Itoa(int(e.Count)), e.From, e.Reason, e.Object, e.Text})
	}
	p.section(rows)
}
