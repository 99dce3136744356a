// Package plan is the command that proposes how to divide a fleet's GPUs.
//
//	snapshot, cluster or trace (source.go) -> demand.Fleet -> questions (whatif.go) -> proposal.Plan -> text or JSON (print.go),
//	files (changes.go), page (drawn.go)
package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/proposal"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/snapshot"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/price"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/source"
	"github.com/gpuslice/gpuslice/policies/config"
)

const long = `Propose how to divide each GPU, how many GPUs the pods need then against today, and which pods would wait.

The plan has two kinds of numbers. GPUs needed are counted as if there were enough nodes of each kind: with today's layout, with the
proposed layout, and a lower bound, below which no layout of the same strategies comes. Pods that wait are counted on the nodes that
are there, with their CPU and memory, as the stock scheduler places pods.

A pod that needs a part of a GPU gets the smallest part that fits its request. Pods that run keep the model of their GPU. Sharing
costs throughput: the plan counts memory and the shares that pods request, but not how fast programs run beside each other.
Where the use of multiprocessors was measured, pods that use more than 80 % of a GPU together do not share it.

Without --from, the plan is for the cluster. --from FILE reads a file that gpuslice snapshot wrote.

--sizes observed uses the most that containers used, plus 10 %, instead of what they request. --sizes recommended uses the sizes of
gpuslice recommend, from the files of --samples, which are those of gpuslice recommend --from, or from what gpuslice's leader recorded in
the cluster; for pods without either it uses a built-in table for their peak since they started. --peak selects the moment that the plan is for: max is the moment at which the pods
in the snapshot request most GPUs, p95 leaves out the highest 5 % of the time.

--changes writes ConfigMaps for the device plugin and the MIG manager, gpuslice's policy if it must allow another strategy, a script
that labels nodes in an order that disrupts no pod, and changes.diff, the difference from today's objects. What the plan needs is added to
today's ConfigMaps: those of --against, else the cluster's policies and those that NVIDIA's DaemonSets mount. With --from alone, ConfigMaps are new.
--page writes an HTML file like that of gpuslice page, with the nodes and their pods as they are and with the plan.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "Plan", ...}, with devices (total, today, planned,
lowerBound, freed, gapRatio), waiting (before, after), applied (false: more pods would wait, so no node changes), demand, waste (by
cause: today and planned with rounding, stranded and strandedGiB; idle, hardlyUsed and unmeasured, in GPUs held today), models, cost,
groups (by model and layout, least and most: the nodes that the pods need at the quietest moment and at the peak), layouts, nodes, comparison, unplaced and notes.`

const example = `  # this cluster
  gpuslice plan

  # a snapshot, by what containers used, with the cost
  gpuslice plan --from fleet.json.gz --sizes observed --price h100=4.10,a100=2.40

  # the files to apply, and how they differ from the cluster's
  gpuslice plan --changes changes/

  # the same elsewhere
  kubectl get configmaps,namespaces -A -o yaml > today.yaml
  gpuslice plan --from fleet.json.gz --changes changes/ --against today.yaml

  # the nodes before and after, to look at
  gpuslice plan --from fleet.json.gz --page plan.html

  # two replicas of each shared GPU, and one node fewer
  gpuslice plan --from fleet.json.gz --what-if replicas=2 --without gpu-7

  # the numbers alone
  gpuslice plan --from fleet.json.gz -o jsonpath='{.devices.today} {.devices.planned}'`

// options are the command's flags.
type options struct {
	source                source.Flags
	sizes, peak           string
	changes, page         string
	strategies, questions []string
	without, add, prices  []string
	samples, against      []string
	output                cli.Output

	price price.List
}

// New returns the command.
func New(s cli.Streams) *cobra.Command { return newCommand(s, (*options).fleet) }

// newCommand returns the command with a reader of its input.
func newCommand(s cli.Streams, read func(*options, context.Context, cli.Streams) (*input, error)) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "plan [--from FILE]",
		Short:   "Propose how to divide the GPUs, and what that saves",
		Long:    long,
		Example: example,
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s, read) },
	}
	flags := cmd.Flags()
	o.source.Register(cmd)
	flags.StringVar(&o.source.From, "from", "",
		"`FILE` of a snapshot, -: standard input (default: the cluster)")
	flags.StringSliceVar(&o.strategies, "strategies", nil, "`STRATEGIES` that the plan may use: exclusive, one of time-slicing and mps, mig, claim (default: time-slicing, and those that nodes have)")
	flags.StringVar(&o.sizes, "sizes", snapshot.Requested, "`SIZES` of pods: requested, recommended, observed")
	flags.StringArrayVar(&o.samples, "samples", nil,
		"`FILE` with samples of GPU memory for --sizes recommended: the JSON of range queries of Prometheus, or CSV; .gz; may be repeated")
	flags.StringVar(&o.peak, "peak", snapshot.Max, "`MOMENT` that the plan is for: max, p95")
	flags.StringArrayVar(&o.questions, "what-if", nil, "`QUESTION`: replicas=N for all shared GPUs, sizes=recommended; may be repeated")
	flags.StringSliceVar(&o.without, "without", nil, "`NODES` to leave out")
	flags.StringSliceVar(&o.add, "add", nil, "`GPUS` to add, on nodes like those that are there: 4xH100")
	flags.StringSliceVar(&o.prices, "price", nil, "`MODEL=PRICE` of a device-hour; * is any other model")
	flags.StringVar(&o.changes, "changes", "", "`FOLDER` to write the changes into")
	flags.StringArrayVar(&o.against, "against", nil, "`FILE` or directory with today's ConfigMaps, as kubectl get configmaps,namespaces -A -o yaml prints them, for --changes to change; may be repeated (default: the cluster's)")
	flags.StringVar(&o.page, "page", "", "`FILE` to draw the nodes in, as they are divided today and by the plan; -: standard output")
	o.output.Register(cmd, cli.YAML, cli.JSONPath)
	return cmd
}

// sizes are the values of --sizes.
var sizes = []string{snapshot.Requested, snapshot.Recommended, snapshot.Observed}

func (o *options) checkSamples() error {
	if len(o.samples) > 0 && o.sizes != snapshot.Recommended {
		return fmt.Errorf("--samples: they count with --sizes %s alone", snapshot.Recommended)
	}
	return nil
}

func (o *options) check() (err error) {
	// a model, or a word of its name
	o.price, err = price.Parse(o.prices, "MODEL=PRICE, such as a100=2.40 or '*=1'", func(string) bool { return true })
	if len(o.against) > 0 && o.changes == "" {
		err = errors.Join(err, errors.New("--against: it is for --changes, which is missing"))
	}
	return errors.Join(err, accepted("sizes", o.sizes, sizes...), accepted("peak", o.peak, snapshot.Max, snapshot.P95))
}

// document is -o json.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	*proposal.Plan
	Cost *cost `json:"cost,omitempty"`
}

func (o *options) run(ctx context.Context, s cli.Streams, read func(*options, context.Context, cli.Streams) (*input, error)) error {
	familiesOf, err := parseStrategies(o.strategies)
	if err != nil {
		return err
	}
	replicas, err := o.whatIf()
	if err := errors.Join(err, accepted("what-if sizes", o.sizes, sizes...), o.checkSamples()); err != nil {
		return err
	}
	in, err := read(o, ctx, s)
	if err != nil {
		return err
	}
	for _, f := range slices.Compact([]*demand.Fleet{in.Fleet, in.quiet}) {
		if err := errors.Join(without(f, o.without), add(f, o.add)); err != nil {
			return err
		}
	}
	families := familiesOf(in.Fleet)
	if replicas > 0 {
		families.Only(replicas)
	}
	p, err := makePlan(ctx, in.Fleet, families)
	if err != nil {
		return err
	}
	p.Notes = append(p.Notes, in.notes...)
	p.Group(in.Fleet, in.quiet)
	if o.changes != "" {
		if err := o.writeChanges(ctx, s, in.Fleet, p); err != nil {
			return err
		}
	}
	if o.page != "" {
		if err := o.writePage(s, in, p); err != nil {
			return err
		}
	}
	d := document{config.APIVersion, "Plan", p, o.cost(p)}
	return o.output.Print(s.Out, cli.Answer{Document: d, Page: func() *cli.Page { return pageOf(&d) }})
}

// makePlan returns without a plan when the context ends. A running computation then ends with the program.
func makePlan(ctx context.Context, f *demand.Fleet, families layout.Families) (p *proposal.Plan, err error) {
	made := make(chan *proposal.Plan, 1)
	go func() { made <- proposal.Make(f, families) }()
	select {
	case p = <-made:
	case <-ctx.Done():
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("make the plan: %w", err)
	}
	return p, nil
}

func (o *options) writeChanges(ctx context.Context, s cli.Streams, f *demand.Fleet, p *proposal.Plan) error {
	today, err := o.readObjects(ctx, s)
	if err != nil {
		return err
	}
	files, err := changesOf(f, p, today)
	if err != nil {
		return err
	}
	p.Notes = append(p.Notes, today.notes(f, p)...)
	return files.write(o.changes)
}
