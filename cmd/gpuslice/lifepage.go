package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/life"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// tellLife tells what became of an object of the cluster.
func tellLife(ctx context.Context, f *subjectFlags, target string, s streams) error {
	connection, err := f.kube.Connect(buildVersion(), s.err)
	if err != nil {
		return err
	}
	facts, err := life.Gather(ctx, connection.Client, connection.Namespace, target)
	if err != nil {
		return err
	}
	told := life.Tell(facts)
	if f.output == "json" {
		err = printJSON(s.out, struct {
			APIVersion string `json:"apiVersion"`
			life.Life
		}{outputVersion, told})
	} else {
		p := page{}
		p.life(told)
		err = p.print(s.out)
	}
	switch {
	case err != nil:
		return err
	case told.State == life.Missing:
		return exitError(exitInput)
	case told.Refused():
		return exitError(exitRefused)
	}
	return nil
}

// life writes all that is known of an object.
func (p *page) life(l life.Life) {
	p.line(l.Kind + " " + l.Namespace + "/" + l.Name)
	state := string(l.State)
	if l.Node != "" {
		state += " on node " + l.Node
	}
	rows := [][]string{{"state", state}}
	if l.Asked != nil {
		rows = append(rows, []string{"asked", asked(l.Asked)})
	}
	if g := l.Given; g != nil {
		rows = append(rows, []string{"policy", g.Policy}, []string{"strategy", string(g.Strategy)}, []string{"pool", strings.Join(g.Pools, ", ")},
			[]string{"counts for", charge(g.Charge)}, []string{"planned", string(g.Planned.Tier)})
	}
	if o := l.Observed; o != nil {
		rows = append(rows, []string{"observed", strings.TrimSpace(string(o.State) + " " + string(o.Tier))})
	}
	p.table("  ", rows)
	for _, why := range l.Why {
		p.line("  because " + oneLine(why))
	}
	if l.Given != nil {
		p.containers(&promise.Promise{Containers: l.Given.Containers}, &l.Given.Planned)
		for _, note := range l.Given.Planned.Notes {
			p.line("  note: " + note)
		}
	}
	p.rooms(l.Nodes)
	p.shorts(l.Pods)
	p.told(l.Told)
	for _, note := range l.Notes {
		p.line("note: " + note)
	}
}

// asked says what a pod asked, before it was rewritten.
func asked(r *api.Request) string {
	var all []string
	for _, c := range r.Containers {
		text := c.Name + ":"
		if c.Resource != "" {
			text += fmt.Sprintf(" %d %s", c.GPUs, c.Resource)
		}
		for _, part := range [][2]string{
			{"memory ", amount(c.Size.Memory)}, {"up to ", amount(c.Size.MemoryLimit)}, {"fraction ", fraction(c.Size.Fraction)},
			{"class ", c.Size.Class}, {"compute ", percent(c.Size.Compute)},
		} {
			if part[1] != "" {
				text += ", " + part[0] + part[1]
			}
		}
		all = append(all, text)
	}
	if !r.Explicit {
		all = append(all, "no slice of its own: policy gives one")
	}
	return strings.Join(all, "; ")
}

func fraction(f api.Fraction) string {
	if f.Zero() {
		return ""
	}
	return f.String()
}

func (p *page) rooms(nodes []life.Node) {
	if len(nodes) == 0 {
		return
	}
	rows := [][]string{{"NODE", "RESOURCE", "OFFERED", "FREE", "BUT"}}
	for _, n := range nodes {
		free := "?"
		if n.Free >= 0 {
			free = strconv.FormatInt(n.Free, 10)
		}
		rows = append(rows, []string{n.Name, n.Resource, strconv.FormatInt(n.Offered, 10), free, n.But})
	}
	p.line("")
	p.table("  ", rows)
}

func (p *page) shorts(pods []life.Short) {
	if len(pods) == 0 {
		return
	}
	rows := [][]string{{"POD", "STATE", "SLICE", "ENFORCEMENT"}}
	for _, s := range pods {
		rows = append(rows, []string{s.Name, string(s.State), s.Slice, s.Holds})
	}
	p.line("")
	p.table("  ", rows)
}

func (p *page) told(events []life.Event) {
	if len(events) == 0 {
		return
	}
	rows := [][]string{{"LAST SEEN", "TIMES", "FROM", "REASON", "ABOUT", "TEXT"}}
	for _, e := range events {
		rows = append(rows, []string{e.At.UTC().Format(time.DateTime), strconv.Itoa(int(e.Count)), e.From, e.Reason, e.Object, e.Text})
	}
	p.line("")
	p.table("  ", rows)
}
