// Package report is the command that sums up what namespaces held of GPUs over days, and what that costs.
//
//	ConfigMaps of days (webhook/usage) -> rows (sum.go), with prices (price.go) -> table or CSV (print.go)
package report

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
	"github.com/gpuslice/gpuslice/webhook/usage"
)

const long = `Sum up what pods held of GPUs in governed namespaces, and what of that they used, over whole UTC days. A slice is held from
when its pod is bound to a node until its last container has ended, whether or not it is used. DEVICE-HOURS are those of whole
devices: a quarter of one for four hours is one. A pod without a slice holds the GPUs that it requests, and of a shared one the
part that a replica or MIG instance is, in the pool of its node, or under the resource's name where that is not known. GPUs that
a pod has by a ResourceClaim that is no slice are counted nowhere.

USED is known where agents measured it each minute (READ is the share of GIB-HOURS for which they did), else it is "unknown".
A guard in the pod may write nothing to the cluster: of what it measures, its metric gpuslice_guard_memory_byte_seconds_total tells.

Each second is counted once, whatever restarts. While no replica of the webhook watched, pods are counted by when they
started and ended; of those that were deleted meanwhile the end is not known, and UNSURE is at most what they held beside
the rest. What was not counted is printed to standard error. Pods that came and went within seconds in which the connection to
the API server was broken are counted nowhere, and not named.

--since and --until take a number of minutes, hours, days or weeks before now (90m, 12h, 30d, 4w), or a date (2026-11-01). Days
are not divided: the report begins with the day of --since, and ends with the day before a date given as --until.

--price gives the price of a device-hour by pool, by the beginning of pools' names, such as the device (a100, nvidia-l4), or by
pattern ('a100*'); "*" is any other. A pool's own name comes first, then the longest. A row with a pool that has no price has no COST.
Labels are the tenants' own: who writes pods chooses their values.

This takes the right to list ConfigMaps in the namespace of the installation.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "UsageReport", "items": [...], "errors": [...]}, with
from, until, countedSeconds and unreadSeconds. An item has namespace, pool and label as --by names them, heldGiBHours,
heldDeviceHours, usedGiBHours (absent: not known), usedReadRatio, unsureGiBHours, unsureDeviceHours and cost.`

const example = `  # what each namespace held in the last 30 days
  gpuslice report --since 30d

  # last month, by namespace and pool, for a spreadsheet
  gpuslice report --since 2026-10-01 --until 2026-11-01 --by namespace,pool -o csv

  # what it costs
  gpuslice report --since 30d --by namespace --price a100=2.40,l4=0.70

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

	grouping grouping
	price    prices
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "report [--since 30d] [-n NAMESPACE] [--by namespace|pool|label=KEY]",
		Short:   "Sum up what namespaces held and used over days, and what it costs",
		Long:    long,
		Example: example,
		Args:    cli.NoArguments,
		PreRunE: func(*cobra.Command, []string) error { return o.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	o.kube.Register(flags)
	o.kube.RegisterNamespace(flags, "to report (default: all)")
	flags.StringVar(&o.since, "since", "30d", "`TIME` or date with which the report begins")
	flags.StringVar(&o.until, "until", "", "`TIME` or date before which it ends (default: now)")
	flags.StringSliceVar(&o.by, "by", []string{"namespace"}, "`WHAT` has a row each: namespace, pool, label=KEY")
	flags.StringSliceVar(&o.prices, "price", nil, "`POOL=PRICE` of a device-hour: a pool, its device, or a pattern; * is any other pool")
	cli.SystemNamespaceFlag(flags, &o.systemNamespace)
	o.output.Register(flags, csvFormat, cli.YAML, cli.JSONPath)
	o.kube.CompleteNamespaces(cmd, s)
	return cmd
}

func (o *options) check() (err error) {
	var problems [3]error
	o.grouping, problems[0] = parseGrouping(o.by)
	o.price, problems[1] = parsePrices(o.prices)
	problems[2] = o.output.Check()
	return errors.Join(problems[:]...)
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	asked, err := parsePeriod(o.since, o.until, s.Now())
	if err != nil {
		return err
	}
	o.namespace = o.kube.Namespace
	connection, err := o.kube.Connect(s)
	if err != nil {
		return err
	}
	days, unread, err := usage.Read(ctx, connection.Client, o.systemNamespace, asked.from, asked.until)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; whoever may list ConfigMaps in namespace %s can report", err, o.systemNamespace)
	}
	if err != nil {
		return err
	}
	r := o.sum(asked, days)
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

// daysText names days: the first ones, and how many there are.
func daysText(days []time.Time) string {
	const most = 5
	var names []string
	for _, d := range days[:min(len(days), most)] {
		names = append(names, d.Format(time.DateOnly))
	}
	text := strings.Join(names, ", ")
	if more := len(days) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
