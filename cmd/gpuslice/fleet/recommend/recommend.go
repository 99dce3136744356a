// Package recommend is the command that recommends the size of a slice.
package recommend

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

const long = `Recommend the size of a slice, from the GPU memory that was observed of workloads. For a model that has not run yet, see gpuslice estimate.

From a history: for each container of a workload, the size that its peak will not exceed within --period, for --coverage percent of
workloads. How far peaks rise is learned from the workloads themselves: the later parts of their histories against the earlier parts.
It is learned from the workloads of the namespace if there are enough (19 for 95%), else from all, else from a built-in table. Where
histories are too short for --period, a size holds for less. Notes on standard error name both. PEAK is the highest observed (unknown
where DCGM measured a GPU that several containers shared), NOW the slice, SIZE what to request, rounded up to what a pool gives
(without a cluster, to 256Mi), SAVES what that frees in all pods.

VERDICT is over-requested, right, at-risk (near-limit warnings, terminations, a size above the slice, or memory that rises without
end), no-slice (nothing to compare with), not-enough-history (less than 6 hours), takes-what-is-given (a server that allocates all it
is given: its peak is not what it needs), idle, or unknown. MARKS are reasons why a workload may still exceed its size: short-history
(less than 8 days), growing, leak, startup-peak, rare-peak, restarts, uneven-days, two-modes, gaps, at-limit.

Samples come from Prometheus: the metrics of agents and guards, and for workloads without these the GPU memory by pod of DCGM exporter,
so that this works before gpuslice is installed. kube-state-metrics, where Prometheus has it, adds the owners of pods, and containers
that were killed for the memory of the host (at-risk, because their peaks were cut off). Prometheus is found in the cluster and read
through the API server (the right to list Services, and to get services/proxy), or at --prometheus. Where there is none, or with
--from record, they come from the record that gpuslice's leader keeps of what agents report (the right to list ConfigMaps in
gpuslice's namespace). Peaks in it are rounded up by at most 1.1%, and pods with several slices are left out.
Workloads of several clusters behind one server have a row each; --prometheus-cluster selects one.
Otherwise --from reads files: answers of /api/v1/query_range, one after the other,
with the metric's name or in bytes; or CSV with the columns seconds or timestamp, memory_mib or memory_bytes, and pod, workload or
container; and optionally namespace, device, and slice_mib or slice_bytes.

-o json prints {"apiVersion": "gpuslice.dev/v1", "kind": "SizeRecommendationList", "items": [...], "errors": []}. An item has
cluster, namespace, workload, kind, container, pods, hours, peak, slice, device, verdict, marks, estimate, size, pool, coverage, holdsForHours,
moreHours, basis, events, engineCacheUse, savesBytes and savesPerMonth (absent: unknown), advice, and incomplete: the
server's warnings about incomplete answers. -o patch prints what kubectl apply --server-side takes: the
label with the size for each owner that should change, and on standard error why others have none.`

const example = `  # what the workloads of the cluster need, by what they would free
  gpuslice recommend

  # one namespace at 99%, with what a change saves a month where a GPU costs 2.40 an hour
  gpuslice recommend -n team-a --coverage 99 --price 2.40

  # from files, for a spreadsheet
  gpuslice recommend --from range.json.gz --from usage.csv -o csv

  # label the owners
  gpuslice recommend -n team-a -o patch | kubectl apply --server-side --field-manager gpuslice-recommend -f -`

// options are the command's flags.
type options struct {
	history historyOptions
	output  cli.Output
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "recommend [WORKLOAD ...] [-n NAMESPACE] [--from FILE] [flags]",
		Short:   "Recommend the size of a slice",
		Long:    long,
		Example: example,
		Args:    cobra.ArbitraryArgs,
		PreRunE: func(_ *cobra.Command, args []string) error {
			o.history.workloads = args
			return o.history.check()
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.history.run(cmd.Context(), s, &o.output) },
	}
	o.history.register(cmd.Flags())
	registerMoved(cmd.Flags())
	o.output.Register(cmd, cli.YAML, csvFormat, patchFormat, cli.JSONPath)
	o.history.kube.CompleteNamespaces(cmd, s)
	return cmd
}

// registerMoved has the flags of an estimate for a model name the command that takes them.
func registerMoved(flags *pflag.FlagSet) {
	for _, name := range []string{"model", "engine", "concurrency", "tensor-parallel", "dtype", "kv-dtype"} {
		flags.Func(name, "", func(string) error { return errors.New("a model is estimated by gpuslice estimate DIRECTORY") })
		_ = flags.MarkHidden(name) // fails only for a flag that is not registered
	}
}
