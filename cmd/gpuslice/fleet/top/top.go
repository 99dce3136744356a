// Package top is the command that shows how much of its slice each container uses now. The use is read where it is
// measured, through the API server's proxy: from the agent of the pod's node, or from the guard in the pod.
//
//	pods -> usages (cmd/gpuslice/fleet/scrape) -> table (print.go)
package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/scrape"
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
