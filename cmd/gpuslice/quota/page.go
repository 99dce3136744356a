package quota

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/budget"
	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// page shows budgets.
type page struct {
	cli.Page
	paint cli.Painter
}

func pageOf(all []budget.Budget, paint cli.Painter) *page {
	p := &page{paint: paint}
	if len(all) == 0 {
		p.Line("no namespace has a quota")
	}
	for i, b := range all {
		if i > 0 {
			p.Line("")
		}
		p.budget(b)
	}
	return p
}

func (p *page) budget(b budget.Budget) {
	_, name, _ := strings.Cut(b.Budget, "/")
	switch {
	case b.Policy == "":
		p.Line("namespace " + strings.Join(b.Namespaces, ", ") + ": no policy governs it, so its pods have no quota")
		return
	case strings.HasPrefix(b.Budget, "shared/"):
		p.Line("budget " + name + ", shared by " + strings.Join(b.Namespaces, ", ") + ", policy " + b.Policy)
	default:
		p.Line("namespace " + name + ", policy " + b.Policy)
	}
	switch {
	case len(b.Figures) == 0:
		p.Line("  no quota")
	case !b.Counted:
		p.Line("  not counted yet; retry in a few seconds")
	default:
		p.figures(b)
	}
	p.holders(b.Holders)
}

func (p *page) figures(b budget.Budget) {
	rows := [][]string{{"QUOTA", "DIMENSION", "USED", "RESERVED", "LIMIT", "TAKEN"}}
	for _, f := range b.Figures {
		reserved := ""
		if f.Reserved > 0 {
			reserved = f.Text(f.Reserved)
		}
		used := f.Text(f.Used)
		if b.MemoryUnknown && f.Dimension == "memory" {
			used += " + unknown"
		}
		rows = append(rows, []string{f.Quota, f.Dimension, used, reserved, f.Text(f.Limit), bar(f)})
	}
	p.PaintedTable("  ", rows, func(row int, cell string) string {
		if row == 0 {
			return cell
		}
		return p.paint(colourOf(b.Figures[row-1]), cell)
	})
	if b.More > 0 {
		p.Line("  " + cli.AndMore(b.More))
	}
}

// bar is a figure to look at: # is held, + reserved, . free.
func bar(f quota.Figure) string {
	const width = 20
	if f.Limit <= 0 {
		return "[" + strings.Repeat("#", width) + "] none is allowed"
	}
	share := func(n float64) float64 { return min(n/f.Limit, 1) }
	used, taken := int(share(f.Used)*width), int(share(f.Used+f.Reserved)*width)
	if f.Used > 0 && used == 0 { // a little is not nothing
		used, taken = 1, max(taken, 1)
	}
	percent := 100 * (f.Used + f.Reserved) / f.Limit
	return fmt.Sprintf("[%s%s%s] %3.0f%%", strings.Repeat("#", used), strings.Repeat("+", taken-used),
		strings.Repeat(".", width-taken), percent)
}

// colourOf warns if four fifths are taken, and if all is.
func colourOf(f quota.Figure) cli.Colour {
	switch {
	case f.Full():
		return cli.Red
	case 5*(f.Used+f.Reserved) >= 4*f.Limit:
		return cli.Yellow
	}
	return cli.Green
}

func (p *page) holders(all []budget.Holder) {
	if len(all) == 0 {
		return
	}
	rows := [][]string{{"HOLDS THE MOST", "MEMORY", "SLICES", "GPUS", "DEVICES", "NOTE"}}
	for _, h := range all {
		note := ""
		switch {
		case h.Untrusted:
			note = "its promise is not trusted: counts as whole devices (gpuslice resign)"
		case !h.Promised:
			note = "no slice: counts as whole devices"
		}
		rows = append(rows, []string{h.Namespace + "/" + h.Pod, cli.Amount(api.MiB(h.Memory >> 20)),
			cli.Count(h.Slices), cli.Count(h.GPUs), devices(h.Devices), note})
	}
	p.Table("  ", rows)
}

// devices are GPU equivalents: "0.25".
func devices(n float64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatFloat(math.Ceil(n*1000-1e-6)/1000, 'f', -1, 64)
}
