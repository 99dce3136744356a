package main

import (
	"fmt"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/standing"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// budgets writes how budgets stand. paint gives a text a colour, where there are any.
func (p *page) budgets(all []standing.Budget, paint func(colour, text string) string) {
	if len(all) == 0 {
		p.line("no namespace has a quota")
	}
	for i, b := range all {
		if i > 0 {
			p.line("")
		}
		p.budget(b, paint)
	}
}

func (p *page) budget(b standing.Budget, paint func(colour, text string) string) {
	_, name, _ := strings.Cut(b.Budget, "/")
	switch {
	case b.Policy == "":
		p.line("namespace " + strings.Join(b.Namespaces, ", ") + ": no policy governs it, so nothing limits what its pods hold together")
		return
	case strings.HasPrefix(b.Budget, "shared/"):
		p.line("budget " + name + ", shared by " + strings.Join(b.Namespaces, ", ") + ", policy " + b.Policy)
	default:
		p.line("namespace " + name + ", policy " + b.Policy)
	}
	switch {
	case len(b.Figures) == 0:
		p.line("  no quota")
	case !b.Counted:
		p.line("  not counted yet; ask again in some seconds")
	default:
		p.figures(b, paint)
	}
	p.holders(b.Holders)
}

func (p *page) figures(b standing.Budget, paint func(colour, text string) string) {
	rows := [][]string{{"QUOTA", "DIMENSION", "USED", "RESERVED", "LIMIT", "TAKEN"}}
	for _, f := range b.Figures {
		reserved := ""
		if f.Reserved > 0 {
			reserved = f.Text(f.Reserved)
		}
		rows = append(rows, []string{f.Quota, f.Dimension, f.Text(f.Used), reserved, f.Text(f.Limit), paint(colourOfFigure(f), bar(f))})
	}
	p.table("  ", rows)
	if b.More > 0 {
		p.line(fmt.Sprintf("  and %d more", b.More))
	}
}

// bar is a figure to look at: # is held, + reserved, . free.
func bar(f quota.Figure) string {
	const width = 20
	if f.Limit <= 0 {
		return "[" + strings.Repeat("#", width) + "] none is allowed"
	}
	share := func(n int64) float64 { return min(float64(n)/float64(f.Limit), 1) }
	used, taken := int(share(f.Used)*width), int(share(f.Used+f.Reserved)*width)
	if f.Used > 0 && used == 0 { // a little is not nothing
		used, taken = 1, max(taken, 1)
	}
	percent := 100 * (float64(f.Used) + float64(f.Reserved)) / float64(f.Limit)
	return fmt.Sprintf("[%s%s%s] %3.0f%%", strings.Repeat("#", used), strings.Repeat("+", taken-used), strings.Repeat(".", width-taken), percent)
}

// colourOfFigure warns where four fifths are taken, and where all is.
func colourOfFigure(f quota.Figure) string {
	switch {
	case f.Full():
		return red
	case 5*(f.Used+f.Reserved) >= 4*f.Limit:
		return yellow
	}
	return green
}

func (p *page) holders(all []standing.Holder) {
	if len(all) == 0 {
		return
	}
	rows := [][]string{{"HOLDS THE MOST", "MEMORY", "SLICES", "GPUS", "NOTE"}}
	for _, h := range all {
		note := ""
		if !h.Promised {
			note = "no slice: counts as whole devices"
		}
		rows = append(rows, []string{h.Namespace + "/" + h.Pod, amount(api.MiB(h.Memory >> 20)), counted(h.Slices), counted(h.GPUs), note})
	}
	p.table("  ", rows)
}

func counted(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
