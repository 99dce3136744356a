// Package recommend is the command that recommends the size of a slice.
package recommend

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

const long = `Recommend the size of a slice, from the GPU memory that was observed of workloads, or with --model for a model that has not run yet.

From a history: for each container of a workload, the size that its peak will not exceed within --period, for --coverage percent of
workloads. How far peaks rise is learned from the workloads themselves: the later parts of their histories against the earlier parts.
It is learned from the workloads of the namespace if there are enough (19 for 95%), else from all, else from a built-in table. Where
histories are too short for --period, a size holds for less. Notes on standard error name both. PEAK is the highest observed, NOW the
slice, SIZE what to request, rounded up to what a pool gives (without a cluster, to 256Mi), SAVES what that frees in all pods.

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
Otherwise --from reads files: answers of /api/v1/query_range, one after the other,
with the metric's name or in bytes; or CSV with the columns seconds or timestamp, memory_mib or memory_bytes, and pod, workload or
container; and optionally namespace, device, and slice_mib or slice_bytes.

-o json prints {"apiVersion": "gpuslice.dev/v1", "kind": "SizeRecommendationList", "items": [...], "errors": []}. An item has
namespace, workload, kind, container, pods, hours, peak, slice, device, verdict, marks, estimate, size, pool, coverage, holdsForHours,
moreHours, basis, events, engineCacheUse, savesBytes and savesPerMonth (absent: unknown), and advice. -o patch prints what kubectl apply --server-side takes: the
label with the size for each owner that should change, and on standard error why others have none.

With --model, from the configuration of a language model: what an inference engine keeps on each GPU for weights, KV cache and itself, the
slice that holds it, and the engine's flags for that slice. Nothing is downloaded. DIRECTORY has config.json and, if there is one,
model.safetensors.index.json or model.safetensors, whose size counts more than what is computed. What the files leave out is assumed, and each
assumption is printed. If no rule is known for the model's attention, there is no number for it, and no answer.

All amounts are for one GPU; --tensor-parallel is how many GPUs divide the model.

-o json prints {"apiVersion": "gpuslice.dev/v1", "kind": "ModelEstimate", ...} with weightsBytes, kvBytesPerToken, kvBytes, overheadBytes and
sliceBytes (null: unknown), attention, flags, assumed and unknown ("": everything is known). kvBytesPerToken is of each token that the engine's
log counts; kvBytes is the memory of --concurrency requests of --context tokens.`

const example = `  # what the workloads of the cluster need, by what they would free
  gpuslice recommend

  # one namespace at 99%, with what a change saves a month where a GPU costs 2.40 an hour
  gpuslice recommend -n team-a --coverage 99 --price 2.40

  # from files, for a spreadsheet
  gpuslice recommend --from range.json.gz --from usage.csv -o csv

  # label the owners
  gpuslice recommend -n team-a -o patch | kubectl apply --server-side --field-manager gpuslice-recommend -f -

  # the slice for a model that is on this disk, for 16 requests of 8192 tokens at a time
  gpuslice recommend --model /models/llama-3.1-8b --engine vllm --context 8192 --concurrency 16

  # the same on two GPUs with a KV cache of 8 bits, for a program
  gpuslice recommend --model config.json --tensor-parallel 2 --kv-dtype fp8 -o json`

// options are the command's flags.
type options struct {
	model   modelOptions
	history historyOptions
	output  cli.Output
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "recommend [WORKLOAD ...] [-n NAMESPACE] [--from FILE | --model DIRECTORY] [flags]",
		Short:   "Recommend the size of a slice",
		Long:    long,
		Example: example,
		Args:    cobra.ArbitraryArgs,
		PreRunE: func(_ *cobra.Command, args []string) error {
			o.history.workloads = args
			return o.check()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.model.path != "" {
				return o.model.run(s, &o.output)
			}
			return o.history.run(cmd.Context(), s, &o.output)
		},
	}
	o.model.register(cmd.Flags())
	o.history.register(cmd.Flags())
	o.output.Register(cmd, cli.YAML, csvFormat, patchFormat, cli.JSONPath)
	cmd.Flags().Lookup("context").Usage =
		"`CONTEXT` of the kubeconfig (default: its current one); with --model the tokens of a request, prompt and answer (default 8192)"
	o.history.kube.CompleteNamespaces(cmd, s)
	return cmd
}

func (o *options) check() error {
	if o.model.path == "" {
		return o.history.check()
	}
	switch h := &o.history; {
	case h.card != "":
		return errors.New("--device-memory is for histories: with --model, compare the slice with what gpuslice pools has")
	case len(h.workloads)+len(h.from) > 0 || h.prometheus.Address != "":
		return errors.New("--model takes no history: leave out workloads, --from and --prometheus")
	case o.output.Format == csvFormat || o.output.Format == patchFormat:
		return fmt.Errorf("-o %s is for histories: --model prints text, json, yaml or jsonpath", o.output.Format)
	}
	return o.model.parseContext(o.history.kube.Context)
}
