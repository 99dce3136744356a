package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/snapshot"
	"github.com/gpuslice/gpuslice/policies/api"
)

// input is the input of a plan.
type input struct {
	*demand.Fleet
	quiet *demand.Fleet // at the moment at which pods request fewest GPUs
	read  *inventory.Fleet
	notes []string // on gaps in the plan's knowledge
}

// fleet reads --from or the cluster.
func (o *options) fleet(ctx context.Context, s cli.Streams) (*input, error) {
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
