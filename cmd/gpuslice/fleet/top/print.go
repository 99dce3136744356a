package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/scrape"
	"github.com/gpuslice/gpuslice/guard"
)

// printer prints usages as the flags want them.
type printer struct {
	*options
	streams cli.Streams
	nothing string
}

// wipe puts the cursor of a terminal to the top, and clears the rest.
const wipe = "\x1b[H\x1b[J"

// print prints the result. With -w, it takes the place of the former one.
func (p *printer) print(found scrape.Pods, first bool) error {
	people := p.output.Format == "text" || p.output.Format == cli.Wide
	switch {
	case p.watch && people && p.streams.Escapes():
		fmt.Fprint(p.streams.Out, wipe)
	case !first && people:
		fmt.Fprintln(p.streams.Out)
	case p.watch && p.output.Format == cli.YAML:
		fmt.Fprintln(p.streams.Out, "---")
	}
	for _, e := range found.Unread {
		fmt.Fprintf(p.streams.Err, "%s: %s\n", e.Source, e.Message)
	}
	if people && len(found.Usages) == 0 {
		fmt.Fprintln(p.streams.Err, p.nothing)
		return nil
	}
	return p.output.Print(p.streams.Out, cli.Answer{
		Document: cli.NewList("SliceUsageList", found.Usages, found.Unread...),
		Names:    cli.PodNames(found.Usages, func(u scrape.Usage) (string, string) { return u.Namespace, u.Pod }),
		Page:     func() *cli.Page { return p.page(found.Usages) },
	})
}

func (p *printer) page(all []scrape.Usage) *cli.Page {
	paint := p.streams.Painter()
	notes := slices.ContainsFunc(all, func(u scrape.Usage) bool { return u.Unknown != "" })
	rows := [][]string{{"POD", "CONTAINER", "SLICE", "USED", "USED%", "PEAK", "SM%", "NODE"}}
	if p.pods.All {
		rows[0] = append([]string{"NAMESPACE"}, rows[0]...)
	}
	if p.output.Format == cli.Wide {
		rows[0] = append(rows[0], "SOURCE", "DEVICE")
	}
	if notes {
		rows[0] = append(rows[0], "NOTE")
	}
	for _, u := range all {
		row := []string{u.Pod, u.Container, cli.Amount(u.Memory), cmp.Or(amount(u.UsedBytes), "unknown"),
			percent(u.UsedRatio), amount(u.PeakBytes), percent(u.Utilization), u.Node}
		if p.pods.All {
			row = append([]string{u.Namespace}, row...)
		}
		if p.output.Format == cli.Wide {
			row = append(row, u.Source, u.Device)
		}
		if notes {
			row = append(row, u.Unknown)
		}
		rows = append(rows, row)
	}
	page := &cli.Page{}
	page.PaintedTable("", rows, func(row int, cell string) string {
		if row == 0 || !notes {
			return cell
		}
		return paint(cli.Yellow, cell)
	})
	return page
}

func amount(n *int64) string {
	if n == nil {
		return ""
	}
	return guard.FormatBytes(*n)
}

func percent(ratio *float64) string {
	if ratio == nil {
		return ""
	}
	return strconv.FormatFloat(100**ratio, 'f', 0, 64)
}
