// Package report is the command that sums up the namespaces' holdings of GPUs over days, and their cost.
//
//	ConfigMaps of days (webhook/leader/usage) -> rows (sum.go), with prices (price.go) -> table or CSV (print.go)
//	                                   -> charges of an invoice (charges.go), divided (focus.go) -> FOCUS
//	Prometheus (measured.go) -> charges of devices (devices.go), divided (focus.go) -> FOCUS
package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/history"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/price"
	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

const long = `Sum up what pods held of GPUs in governed namespaces, and what of that they used, over whole UTC days. A slice is held from
when its pod is bound to a node until its last container has ended, whether or not it is used. DEVICE-HOURS are those of whole
devices: a quarter of one for four hours is one. A pod without a slice holds the GPUs that it requests, and of a shared one the
part that a replica or MIG instance is, in the pool of its node, or under the resource's name where that is not known. GPUs
from other ResourceClaims are not counted.

USED is known where agents measured it each minute (READ is the share of GIB-HOURS for which they did), else it is "unknown".
A guard in the pod may write nothing to the cluster: what it measures is in its metric gpuslice_guard_memory_byte_seconds_total.

Each second is counted once, whatever restarts. While no replica of the webhook watched, pods are counted by when they
started and ended; of those that were deleted meanwhile the end is not known, and UNSURE is at most what they held beside
the rest. What was not counted is printed to standard error. Pods that came and went within seconds in which the connection to
the API server was broken are counted nowhere, and not named.

--since and --until take a number of minutes, hours, days or weeks before now (90m, 12h, 30d, 4w), or a date (2026-11-01). Days
are not divided: the report begins with the day of --since, and ends with the day before a date given as --until.

--price gives the price of a device-hour by pool, by the beginning of pools' names, such as the device (a100, nvidia-l4), or by
pattern ('a100*'); "*" is any other. A pool's own name comes first, then the longest. A row with a pool that has no price has no COST.
Labels are the tenants' own: who writes pods chooses their values.

-o focus writes rows of FOCUS 1.3 (split cost allocation), as CSV: what each namespace held of each pool in each calendar month, and rows for what was
idle, for time that was not counted ("unread") and for rounding. The rows of a month of a pool add up to what its devices cost, to the cent. --charges
is a file with what they cost: provider, account, currency, and devices, each with pool (as --price takes it), count, price of a device-hour, and
optionally node. --used divides what was held by its use. These rows divide the provider's own charges: do not add them to those.

--by device has rows for each GPU, from what agents measured each minute, as Prometheus has it. Metrics of guards do not count: tenants' pods serve
them. In --charges a line is then of a node, of a model as --price takes it, or of both; with "prices: opencost", nodes without a line cost what
OpenCost exports to the same Prometheus. A GPU costs its part for the time in which it was seen, and a row "unseen" has the rest of the line or node.
A container holds its slice of a GPU from its first process there on.

This takes the right to list ConfigMaps in the namespace of the installation.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "UsageReport", "items": [...], "errors": [...]}, with
from, until, countedSeconds, unreadSeconds.
An item has namespace, pool and label as --by names them, heldGiBHours,
heldDeviceHours, usedGiBHours (absent: not known), usedReadRatio, unsureGiBHours, unsureDeviceHours and cost.`

const example = `  # what each namespace held in the last 30 days
  gpuslice report --since 30d

  # last month, by namespace and pool, for a spreadsheet
  gpuslice report --since 2026-10-01 --until 2026-11-01 --by namespace,pool -o csv

  # what it costs
  gpuslice report --since 30d --by namespace --price a100=2.40,l4=0.70

  # an allocation of last month's invoice, for tools that read FOCUS
  gpuslice report --since 2026-10-01 --until 2026-11-01 -o focus --charges charges.yaml > focus.csv

  # the same for each GPU, with what Prometheus knows
  gpuslice report --since 2026-10-01 --until 2026-11-01 -o focus --by device --charges charges.yaml > focus.csv

  # the teams of one namespace, if the installation has usage.label=team
  gpuslice report --since 7d -n research --by label=team`

// csvFormat is the format of -o for spreadsheets.
const csvFormat = "csv"

// options are the command's flags.
type options struct {
	kube            kube.Flags
	namespace       string
	since, until    string
	by              []string
	prices          []string
	output          cli.Output
	systemNamespace string
	chargesFile     string
	used            bool
	prometheus      history.Server

	charges  *invoice
	grouping grouping
	price    price.List
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "report [--since 30d] [-n NAMESPACE] [--by namespace|pool|label=KEY]",
		Short:   "Sum up what namespaces held and used over days, and what it costs",
		Long:    long,
		Example: example,
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	o.kube.Register(flags)
	o.kube.RegisterNamespace(flags, "to report (default: all)")
	flags.StringVar(&o.since, "since", "30d", "`TIME` or date with which the report begins")
	flags.StringVar(&o.until, "until", "", "`TIME` or date before which it ends (default: now)")
	flags.StringSliceVar(&o.by, "by", []string{"namespace"}, "`WHAT` has a row each: namespace, pool, label=KEY; with -o focus: device")
	flags.StringSliceVar(&o.prices, "price", nil, "`POOL=PRICE` of a device-hour: a pool, its device, or a pattern; * is any other pool")
	cli.SystemNamespaceFlag(flags, &o.systemNamespace)
	flags.StringVar(&o.chargesFile, "charges", "", "`FILE` of what devices cost, for -o focus")
	flags.BoolVar(&o.used, "used", false, "divide what was held by its use, for -o focus")
	o.prometheus.Register(flags)
	o.output.Register(cmd, csvFormat, focusFormat, cli.YAML, cli.JSONPath)
	o.kube.CompleteNamespaces(cmd, s)
	return cmd
}

func (o *options) check() (err error) {
	var problems [3]error
	o.grouping, problems[0] = parseGrouping(o.by)
	o.price, problems[1] = parsePrices(o.prices)
	problems[2] = o.checkCharges()
	return errors.Join(problems[:]...)
}

func (o *options) checkCharges() (err error) {
	switch focus := o.output.Format == focusFormat; {
	case focus && o.chargesFile == "":
		return errors.New("-o focus: name what devices cost with --charges FILE")
	case !focus && (o.chargesFile != "" || o.used || o.grouping.device):
		return errors.New("--charges, --used and --by device are for -o focus")
	case o.prometheus.Address != "" && !o.grouping.device:
		return errors.New("--prometheus is for --by device: what namespaces held of pools is recorded in the cluster")
	case focus && o.kube.Namespace != "":
		return errors.New("-n: rows of one namespace do not add up to a charge: leave it out with -o focus")
	case focus:
		if o.charges, err = readInvoice(o.chargesFile); err != nil {
			break
		}
		check := o.charges.checkPools
		if o.grouping.device {
			check = o.charges.checkDevices
		}
		if err = check(); err != nil {
			err = fmt.Errorf("--charges %s: %w", o.chargesFile, err)
		}
	}
	return errors.Join(err, o.prometheus.Check())
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	span, err := parsePeriod(o.since, o.until, s.Now())
	if err != nil {
		return err
	}
	if o.grouping.device {
		return o.runDevices(ctx, s, span)
	}
	o.namespace = o.kube.Namespace
	connection, err := o.kube.Connect(s)
	if err != nil {
		return err
	}
	days, unread, err := usage.Read(ctx, connection.Client, o.systemNamespace, span.from, span.until)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; whoever may list ConfigMaps in namespace %s can report", err, o.systemNamespace)
	}
	if err != nil {
		return err
	}
	if o.output.Format == focusFormat {
		return o.runFOCUS(s, span, days, unread)
	}
	r := o.sum(span, days)
	for _, problem := range unread {
		r.Errors = append(r.Errors, cli.Error{Place: cli.Place{Source: "usage"}, Message: problem.Error()})
	}
	if err := o.print(s, r); err != nil {
		return err
	}
	for _, note := range r.notes {
		fmt.Fprintln(s.Err, note)
	}
	tally := cli.Tally{NoAnswer: len(unread) > 0}
	return tally.Exit()
}

// runFOCUS prints the rows of FOCUS, and notes on gaps.
func (o *options) runFOCUS(s cli.Streams, span period, days []*usage.Day, unread []error) error {
	all, notes := o.charges.charges(span, days)
	more, err := o.printFOCUS(s.Out, all)
	if err != nil {
		return err
	}
	notes = append(notes, more...)
	for _, problem := range unread {
		notes = append(notes, "usage: "+problem.Error())
	}
	if missing := missingDays(span, days); len(missing) > 0 {
		notes = append(notes, "unread: "+daysText(missing)+": no replica of the webhook counted, or it is no longer kept")
	}
	for _, note := range notes {
		fmt.Fprintln(s.Err, note)
	}
	tally := cli.Tally{NoAnswer: len(unread) > 0}
	return tally.Exit()
}

// daysText names days: the first ones, and how many there are.
func daysText(days []time.Time) string {
	const most = 5
	var names []string
	for _, d := range days {
		names = append(names, d.Format(time.DateOnly))
	}
	return cli.First(most, names)
}
