package audit

import (
	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
)

// print prints the findings, and returns their exit code.
func (a *auditor) print(output *cli.Output, s cli.Streams) error {
	err := output.Print(s.Out, cli.Answer{
		Document: cli.NewList("AuditList", a.items, manifest.Printed(a.errors)...),
		Names:    cli.Names(a.items, func(i audited) string { return "namespace/" + i.Namespace }),
		Page:     func() *cli.Page { return pageOf(a.items) },
	})
	if err != nil {
		return err
	}
	return a.exit()
}

// exit is the exit code of the findings.
func (a *auditor) exit() error {
	var t cli.Tally
	for _, failed := range a.errors {
		t.Failed(failed)
	}
	for _, item := range a.items {
		t.Denied = t.Denied || item.would(policies.Denied) > 0
	}
	return t.Exit()
}

// would counts objects that would have an outcome.
func (i *audited) would(o policies.Outcome) (n int) {
	for _, g := range i.Groups {
		if g.IfEnforced == o {
			n += g.Count
		}
	}
	return n
}

// pageOf shows the findings.
func pageOf(items []audited) *cli.Page {
	p := &cli.Page{}
	for n, item := range items {
		if n > 0 {
			p.Line("")
		}
		item.show(p)
	}
	return p
}

// show shows the effect of enforce on a namespace.
func (i *audited) show(p *cli.Page) {
	p.Linef("namespace %s, policy %s (%s)", i.Namespace, i.Policy, i.Mode)
	showClaims(p, i.Claims)
	if i.Evaluated == 0 {
		p.Line("  nothing runs there")
		return
	}
	p.Linef("  %d evaluated: enforce would deny %d, mutate %d, hide devices from %d and leave %d unchanged",
		i.Evaluated, i.would(policies.Denied), i.would(policies.Mutated), i.would(policies.DevicesHidden), i.would(policies.Unchanged))
	for _, g := range i.Groups {
		why := g.Rule
		if g.Reason != "" {
			why += ", " + g.Reason
		}
		p.Linef("  %s (%s): %d", g.IfEnforced, why, g.Count)
		if g.IfEnforced == policies.Unchanged {
			continue
		}
		for _, e := range g.Examples {
			text := "    " + e.Kind + " " + e.Name
			if e.Message != "" {
				text += ": " + cli.OneLine(e.Message)
			}
			p.Line(text)
		}
		if more := g.Count - len(g.Examples); more > 0 {
			p.Line("    " + cli.AndMore(more))
		}
	}
}

// showClaims shows claims of GPUs that are no slices.
func showClaims(p *cli.Page, all []member) {
	if len(all) == 0 {
		return
	}
	p.Linef("  claims that are no slices of gpuslice's: %d", len(all))
	for _, m := range all[:min(len(all), maxExamples)] {
		p.Line("    " + m.Kind + " " + m.Name + " " + cli.OneLine(m.Message))
	}
	if more := len(all) - maxExamples; more > 0 {
		p.Line("    " + cli.AndMore(more))
	}
}
