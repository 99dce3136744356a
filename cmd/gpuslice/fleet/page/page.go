// Package page is the command that draws a fleet as one HTML file.
package page

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/draw"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/source"
)

const long = `Draw the GPUs of a cluster as one HTML file: the nodes, how each GPU is divided, which pods hold which part and use how much of it,
quotas, what nobody uses, and pods that wait, with the reason. The file takes nothing from the network and sends nothing: open
it in a browser, or attach it to a ticket. It shows names of pods and nodes, unless the snapshot has hashed names.

Kubernetes records the node of a pod, but not which of its GPUs the pod uses. Where an agent or guard measures a container, the page
shows it on the GPU that was measured; other containers are shown on the first GPU that has room.

Without --from it reads the cluster, which takes the same rights as gpuslice snapshot. With --compare, the page switches between two
snapshots, such as those of two days, and shows what changed: the sums, and both divisions of nodes that are divided differently.
gpuslice plan --page draws such a page of a plan.`

const example = `  # the cluster as it is
  gpuslice page -o fleet.html

  # a snapshot, on any machine
  gpuslice page --from fleet.json.gz -o fleet.html

  # last week and today
  gpuslice page --from monday.json.gz --compare today.json.gz -o fleet.html`

// options are the command's flags.
type options struct {
	source.Flags
	output, compare string
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "page -o FILE",
		Short:   "Draw the GPUs, their slices and the pods that wait as one HTML file",
		Long:    long,
		Example: example,
		PreRunE: func(*cobra.Command, []string) error { return cli.CheckFile(o.output) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	o.Register(cmd)
	o.RegisterFrom(cmd)
	flags := cmd.Flags()
	cli.FileFlag(flags, &o.output)
	flags.StringVar(&o.compare, "compare", "", "`FILE` that gpuslice snapshot wrote, to compare with")
	return cmd
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	first, err := o.Read(ctx, s)
	if err != nil {
		return err
	}
	fleets := []draw.Fleet{{Title: "before", Fleet: first}}
	if o.compare != "" {
		second, err := source.ReadFile(o.compare)
		if err != nil {
			return err
		}
		fleets = append(fleets, draw.Fleet{Title: "after", Fleet: second})
	}
	return cli.WriteFile(o.output, s.Out, func(out io.Writer) error { return draw.Page(out, fleets...) })
}
