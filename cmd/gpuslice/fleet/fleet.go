// Package fleet is the commands about all GPUs of a cluster together: how they are used, what sizes and what layout would
// serve better, and what that costs. They decide nothing about a pod: what decides and enforces imports none of them.
package fleet

import (
	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/page"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/recommend"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/report"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/snapshot"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/top"
)

// New returns the commands.
func New(s cli.Streams) []*cobra.Command {
	return []*cobra.Command{top.New(s), report.New(s), plan.New(s), recommend.New(s), snapshot.New(s), page.New(s)}
}
