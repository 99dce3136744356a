// Package snapshot is the command that writes the resources of a cluster's GPU nodes, and their use by pods, to a file.
package snapshot

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/source"
)

const long = `Write what the GPU nodes of a cluster offer, and what pods request and use of it, to one file: for gpuslice page, and for other
machines and days. gpuslice need not be installed in the cluster.

The file has nodes with GPUs (labels, taints, allocatable resources, devices), pools, pods that request GPUs (labels, requests,
scheduling constraints, times, slices, current use), and quotas. Of other pods it has the sum of their requests on each of these
nodes. It has no environment, command line, image, annotation, Secret or ConfigMap.
--hash-names replaces the names of nodes, pools, device classes, namespaces, pods, containers, controllers, schedulers, budgets and
devices, label keys outside known domains, and label values that do not describe hardware, with hashes, forgets their key, and leaves
out messages that may hold names.

It needs permission to list nodes, and pods of all namespaces. What it may not read is printed to standard error and listed in the file.

The file is JSON, compressed by gzip: {"apiVersion": "gpuslice.dev/v1", "kind": "Fleet", "format": 1, ...} with taken, version,
hashed, unread, notes, pools, nodes, pods and quotas.`

const example = `  # keep what the cluster runs now
  gpuslice snapshot -o fleet.json.gz

  # give it to somebody else
  gpuslice snapshot --hash-names -o fleet.json.gz

  # pods that wait, and why
  gpuslice snapshot -o - | gunzip | jq -r '.pods[] | select(.waiting) | .namespace + "/" + .name + ": " + .waiting'`

// options are the command's flags.
type options struct {
	source.Flags
	output string
	hash   bool
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "snapshot -o FILE",
		Short:   "Write what GPU nodes offer and pods request to a file",
		Long:    long,
		Example: example,
		PreRunE: func(*cobra.Command, []string) error { return cli.CheckFile(o.output) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	o.Register(cmd)
	flags := cmd.Flags()
	cli.FileFlag(flags, &o.output)
	flags.BoolVar(&o.hash, "hash-names", false, "replace names with hashes")
	return cmd
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	f, err := o.Read(ctx, s)
	if err != nil {
		return err
	}
	unread := f.Unread
	if o.hash {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		f.HashNames(key)
	}
	notes := f.Trim() // hashes are longer than most names
	for _, note := range notes {
		fmt.Fprintln(s.Err, note)
	}
	if len(unread)+len(notes) > 0 {
		fmt.Fprintln(s.Err, "The snapshot is not complete.")
	}
	summary := fmt.Sprintf("%d nodes with GPUs, %d pods that request GPUs", len(f.Nodes), len(f.Pods))
	if err := cli.WriteFile(o.output, s.Out, func(out io.Writer) error { return inventory.Write(out, f) }); err != nil {
		return err
	}
	fmt.Fprintln(s.Err, summary)
	return nil
}
