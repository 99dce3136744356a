// Package top is the command that shows how much of its slice each container uses now. The use is read where it is
// measured, through the API server's proxy: from the agent of the pod's node, or from the guard in the pod.
//
//	pods -> usages (cmd/gpuslice/scrape) -> table
package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/scrape"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
	"github.com/gpuslice/gpuslice/guard"
)

const long = `Show how much GPU memory each container uses now, and what share of its slice that is, the highest use first. The agent of the
pod's node measures it, or the guard in the pod if its policy sets guard.metricsPort. Where nothing measures it, or the
measurement is old, USED is "unknown", and NOTE says why. A container with several devices has a line for each.

This takes the right to get pods/proxy in the namespace of the pod, or of the installation for agents.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "SliceUsageList", "items": [...], "errors": [...]}. An item
has namespace, pod, container, node, device, memory (the slice), usedBytes, usedRatio (of the slice), peakBytes,
utilizationRatio (of the device's multiprocessors), source (agent or guard) and unknown (why there is no usedBytes).
With -w it prints one document after the other.`

const example = `  # what my team uses
  gpuslice top -n team-a

  # who fills that node, again every 5 seconds
  gpuslice top --node gpu-node-1 -w

  # slices of which less than a tenth is used
  gpuslice top -A -o json | jq '.items[] | select(.usedRatio != null and .usedRatio < 0.1)'`

// options are the command's flags.
type options struct {
	pods     kube.PodFlags
	output   cli.Output
	sortBy   string
	watch    bool
	interval time.Duration
}

// Orders of --sort-by.
const (
	byUsed    = "used"
	byPercent = "percent"
)

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "top [-n NAMESPACE | -A] [-l SELECTOR] [--node NODE]",
		Short:   "Show how much of their slices containers use now",
		Long:    long,
		Example: example,
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.sortBy, "sort-by", byUsed, "`ORDER`: "+byUsed+" (bytes), "+byPercent+" (of the slice)")
	flags.BoolVarP(&o.watch, "watch", "w", false, "show it again and again, until you interrupt it")
	flags.DurationVar(&o.interval, "interval", 5*time.Second, "`PERIOD` of -w, at least 1s")
	o.output.Register(cmd, cli.Wide, cli.YAML, cli.Name, cli.JSONPath)
	o.pods.Register(cmd, s, "show")
	return cmd
}

func (o *options) check() error {
	if o.sortBy != byUsed && o.sortBy != byPercent {
		return fmt.Errorf("--sort-by %q: accepted: %s, %s", o.sortBy, byUsed, byPercent)
	}
	if o.interval < time.Second {
		return fmt.Errorf("--interval %s: at least 1s", o.interval)
	}
	return o.pods.Check()
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	connection, err := o.pods.Connect(s)
	if err != nil {
		return err
	}
	client, err := scrape.Connect(connection.Config)
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		found, err := o.read(ctx, client)
		if ctx.Err() != nil && !first {
			return nil
		}
		if err != nil && first {
			return err
		}
		p := printer{options: o, streams: s, nothing: o.pods.Nothing()}
		if err != nil {
			fmt.Fprintln(s.Err, err)
		} else if err := p.print(found, first); err != nil {
			return err
		}
		if !o.watch {
			return cli.Tally{NoAnswer: len(found.Unread) > 0}.Exit()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.interval):
		}
	}
}

// read reads all that the flags select, once.
func (o *options) read(ctx context.Context, client scrape.Client) (found scrape.Pods, err error) {
	if _, err := o.pods.Each(ctx, found.Add); err != nil {
		return found, err
	}
	found.Measure(ctx, client, o.pods.System)
	sortUsages(found.Usages, o.sortBy)
	return found, nil
}

// sortUsages puts the highest use first, and unknown ones last.
func sortUsages(all []scrape.Usage, by string) {
	rank := func(u scrape.Usage) float64 {
		switch {
		case u.UsedBytes == nil:
			return -1
		case by == byPercent && u.UsedRatio != nil:
			return *u.UsedRatio
		case by == byPercent:
			return 0
		}
		return float64(*u.UsedBytes)
	}
	slices.SortStableFunc(all, func(a, b scrape.Usage) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Pod, b.Pod))
	})
}

// printer prints usages as the flags want them.
type printer struct {
	*options
	streams cli.Streams
	nothing string
}

// clear puts the cursor of a terminal to the top, and clears the rest.
const clear = "\x1b[H\x1b[J"

// print prints the result. With -w, it takes the place of the former one.
func (p *printer) print(found scrape.Pods, first bool) error {
	people := p.output.Format == "text" || p.output.Format == cli.Wide
	switch {
	case p.watch && people && p.streams.Escapes():
		fmt.Fprint(p.streams.Out, clear)
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
		row := []string{u.Pod, u.Container, cli.Amount(u.Memory), cmp.Or(amount(u.UsedBytes), "unknown"), percent(u.UsedRatio), amount(u.PeakBytes), percent(u.Utilization), u.Node}
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
