package main

import (
	"fmt"

	"github.com/gpuslice/gpuslice/policies"
)

// print prints what was found, and answers with its exit code.
func (a *auditor) print(output string, s streams) (err error) {
	if output == "json" {
		err = printJSON(s.out, listing[audited]{APIVersion: outputVersion, Kind: "AuditList", Items: listOf(a.items), Errors: errorsPrinted(a.errors)})
	} else {
		p := page{}
		for i, item := range a.items {
			if i > 0 {
				p.line("")
			}
			p.audited(item)
		}
		err = p.print(s.out)
	}
	if err != nil {
		return err
	}
	return a.tally()
}

// tally is the exit code of what was found.
func (a *auditor) tally() error {
	var t tally
	for _, failed := range a.errors {
		t.failed(failed)
	}
	for _, item := range a.items {
		t.refused = t.refused || item.would(policies.Refused) > 0
	}
	return t.exit()
}

// would counts what meets a fate.
func (i *audited) would(o policies.Outcome) (n int) {
	for _, g := range i.Groups {
		if g.Would == o {
			n += g.Count
		}
	}
	return n
}

// audited writes what enforce would do in a namespace.
func (p *page) audited(i audited) {
	p.line(fmt.Sprintf("namespace %s, policy %s (%s)", i.Namespace, i.Policy, i.Mode))
	if i.Looked == 0 {
		p.line("  nothing runs there")
		return
	}
	p.line(fmt.Sprintf("  looked at %d; enforce would refuse %d, rewrite %d, take devices from %d that they did not ask for, leave %d alone",
		i.Looked, i.would(policies.Refused), i.would(policies.Rewritten), i.would(policies.Voided), i.would(policies.LeftAlone)))
	for _, g := range i.Groups {
		why := g.Rule
		if g.Reason != "" {
			why += ", " + g.Reason
		}
		p.line(fmt.Sprintf("  %s (%s): %d", g.Would, why, g.Count))
		if g.Would == policies.LeftAlone {
			continue
		}
		for _, e := range g.Examples {
			text := "    " + e.Kind + " " + e.Name
			if e.Message != "" {
				text += ": " + oneLine(e.Message)
			}
			p.line(text)
		}
		if more := g.Count - len(g.Examples); more > 0 {
			p.line(fmt.Sprintf("    and %d more", more))
		}
	}
}
