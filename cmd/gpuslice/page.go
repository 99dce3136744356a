package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// page is text for people in blocks: each block's columns are aligned among themselves.
type page struct {
	blocks []string
}

func (p *page) line(text string) { p.blocks = append(p.blocks, text+"\n") }

// table adds a block of rows whose columns are aligned. Empty cells are printed as "-"; nothing is filled after the
// last column.
func (p *page) table(indent string, rows [][]string) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i == 0 {
				fmt.Fprint(w, indent)
			} else {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cmp.Or(oneLine(cell), "-"))
		}
		fmt.Fprintln(w)
	}
	w.Flush() // a strings.Builder takes everything
	p.blocks = append(p.blocks, b.String())
}

// oneLine keeps a cell from breaking its table.
func oneLine(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(text)
}

func (p *page) print(out io.Writer) error {
	if _, err := io.WriteString(out, strings.Join(p.blocks, "")); err != nil {
		return fmt.Errorf("print the explanation: %w", err)
	}
	return nil
}

// explain writes all that is known of one decision.
func (p *page) explain(r result) {
	if len(p.blocks) > 0 {
		p.line("")
	}
	d := r.decision
	p.line(r.String())
	p.table("  ", facts(r))
	for _, v := range d.Violations {
		p.line("  refused because " + v.String())
	}
	for _, w := range d.Warnings {
		p.line("  warning: " + w)
	}
	if d.Promise != nil {
		p.containers(d.Promise, d.Planned)
	}
	if d.Planned != nil {
		for _, note := range d.Planned.Notes {
			p.line("  note: " + note)
		}
	}
	p.candidates(d.Candidates)
}

// facts are the first lines: what became of the pod, by whom and where.
func facts(r result) [][]string {
	d := r.decision
	outcome := string(d.Outcome)
	if d.Would != d.Outcome {
		outcome += ", would be " + string(d.Would) + " under enforce"
	}
	if d.Why != "" {
		outcome += " (" + d.Why + ")"
	}
	rows := [][]string{{"outcome", outcome}}
	if d.Policy != "" {
		rows = append(rows, []string{"policy", d.Policy + " (" + string(d.Mode) + ")"})
	}
	if d.Planned != nil {
		rows = append(rows, []string{"strategy", string(d.Planned.Strategy)}, []string{"pool", d.Planned.Pool}, []string{"enforcement", string(d.Planned.Tier)})
	}
	if d.Promise != nil {
		if len(d.Promise.Pools) > 1 {
			rows = append(rows, []string{"as good", strings.Join(d.Promise.Pools[1:], ", ")})
		}
		rows = append(rows, []string{"counts for", charge(d.Promise.Charge)})
	}
	return rows
}

func charge(c quota.Charge) string {
	return fmt.Sprintf("memory %s, slices %d, GPUs %d", c.Memory, c.Slices, c.GPUs)
}

// containers lists what each container gets, and what is written into it.
func (p *page) containers(promise *promise.Promise, planned *promise.Planned) {
	rows := [][]string{{"CONTAINER", "RESOURCE", "SLICE", "LIMIT", "COMPUTE", "ENFORCEMENT", "FRAMEWORK"}}
	for _, c := range promise.Containers {
		row := []string{c.Name, strconv.FormatInt(c.Count, 10) + " " + c.Resource, amount(c.Slice), amount(c.Limit), "", "", ""}
		for _, q := range planned.Containers {
			if q.Name == c.Name {
				row[4], row[5], row[6] = percent(q.Compute), tiers(q.Tiers), q.Framework
			}
		}
		rows = append(rows, row)
	}
	p.line("")
	p.table("  ", rows)
	p.injected(promise, planned)
}

// injected lists caps, variables and mounts.
func (p *page) injected(promise *promise.Promise, planned *promise.Planned) {
	for _, c := range planned.Containers {
		if c.Cap != "" {
			p.line("  " + c.Name + ": cap in force: " + c.Cap)
		}
	}
	for _, c := range promise.Containers {
		for _, v := range c.Env {
			p.line("  " + c.Name + ": sets " + v.Name + "=" + v.Value)
		}
		for _, m := range c.Mounts {
			p.line("  " + c.Name + ": mounts " + m.Name + " on " + m.MountPath)
		}
	}
}

// candidates lists every way that was weighed.
func (p *page) candidates(all []api.CandidateReport) {
	if len(all) == 0 {
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
	p.line("")
	p.table("  ", rows)
}

func amount(m api.MiB) string {
	if m == 0 {
		return ""
	}
	return m.Human()
}

func percent(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + "%"
}

func tiers(all []api.Tier) string {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}
