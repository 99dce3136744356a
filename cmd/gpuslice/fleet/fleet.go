// Package fleet is the commands about all GPUs of a cluster together: how they are used, what sizes and what layout would
// serve better, and what that costs. It decides nothing about a pod, and what decides and enforces does without it. The commands:
//
//	top        what slices use now
//	snapshot   the nodes, pools and pods of a cluster, in a file
//	page       the same to look at
//	recommend  the size of a workload's slice
//	estimate   the slice for a model that has not run yet
//	plan       how to divide the GPUs, and what that saves
//	report     what namespaces held and used, and what it costs
//
// What they share:
//
//	inventory     the format of a snapshot
//	source        a snapshot, from a file or a cluster
//	draw          the HTML of page and of plan
//	scrape        the metrics of agents and guards
//	history       what workloads used, from Prometheus, the leader's record or files
//	sizing        the size that follows from a history
//	enginememory  the size that follows from a model
//	price         prices of GPUs
//
// Below plan are demand, placement, layout, proposal, and the plan's own reading of a snapshot.
package fleet

import (
	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/estimate"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/page"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/recommend"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/report"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/snapshot"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/top"
)

// New returns the commands.
func New(s cli.Streams) []*cobra.Command {
	return []*cobra.Command{top.New(s), report.New(s), plan.New(s), recommend.New(s), estimate.New(s), snapshot.New(s), page.New(s)}
}
