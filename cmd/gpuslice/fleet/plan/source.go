package plan

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/openb"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/snapshot"
	"github.com/gpuslice/gpuslice/policies/api"
)

// tracePrefix begins --from for files of the trace openb.
const tracePrefix = "openb:"

// input is the input of a plan.
type input struct {
	*demand.Fleet
	quiet *demand.Fleet    // at the moment at which pods request fewest GPUs
	read  *inventory.Fleet // empty for a trace
	notes []string         // on gaps in the plan's knowledge
}

// fleet reads --from or the cluster.
func (o *options) fleet(ctx context.Context, s cli.Streams) (*input, error) {
	if files, ok := strings.CutPrefix(o.source.From, tracePrefix); ok {
		if o.sizes != snapshot.Requested || o.peak != snapshot.Max {
			return nil, fmt.Errorf("--from %s: a trace has neither use nor times: leave out sizes and --peak", tracePrefix)
		}
		f, err := readTrace(files)
		return &input{f, f, inventory.New(time.Time{}), nil}, err
	}
	recommend, note, err := o.recommend(ctx, s)
	if err != nil {
		return nil, err
	}
	read, err := o.source.Read(ctx, s)
	if err != nil {
		return nil, err
	}
	options := snapshot.Options{Sizes: o.sizes, Peak: o.peak, Recommend: recommend}
	f, notes := snapshot.Read(read, options)
	if note != "" {
		notes = append(notes, note)
	}
	options.Peak = snapshot.Min
	quiet, _ := snapshot.Read(read, options)
	return &input{f, quiet, read, notes}, nil
}

// accepted returns an error for a flag's value that is none of a few.
func accepted(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("--%s %q: accepted: %s", flag, value, strings.Join(values, ", "))
}

func readTrace(files string) (*demand.Fleet, error) {
	nodes, pods, ok := strings.Cut(files, ",")
	if !ok || nodes == "" || pods == "" {
		return nil, fmt.Errorf("--from %q: accepted: %sNODES.csv,PODS.csv", tracePrefix+files, tracePrefix)
	}
	nodeFile, err := os.Open(nodes)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	defer nodeFile.Close()
	podFile, err := os.Open(pods)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	defer podFile.Close()
	f, err := openb.Read(nodeFile, podFile)
	if err != nil {
		return nil, fmt.Errorf("--from %s%s: %w", tracePrefix, files, err)
	}
	return f, nil
}

// parseStrategies reads --strategies; without any, they are those of the fleet's nodes and time-slicing.
func parseStrategies(names []string) (func(*demand.Fleet) layout.Families, error) {
	if names == nil {
		return layout.Default, nil
	}
	if len(names) == 0 {
		names = []string{""}
	}
	fam := layout.Whole()
	for _, name := range names {
		switch strategy := api.StrategyName(name); {
		case strategy == layout.MIG:
			fam.MIG = true
		case strategy == layout.Claim:
			fam.Claims = true
		case (strategy == layout.TimeSlicing || strategy == layout.MPS) && (fam.Shared == "" || fam.Shared == strategy):
			fam.Shared, fam.Replicas = strategy, layout.AllReplicas()
		case strategy == layout.Exclusive:
		default:
			return nil, fmt.Errorf("--strategies %q: accepted: exclusive, one of time-slicing and mps, mig, claim", strings.Join(names, ","))
		}
	}
	return func(*demand.Fleet) layout.Families { return fam }, nil
}
