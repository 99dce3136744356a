// Package pools is the command that lists pools: the resources of nodes, the requests of pods, and the room left.
package pools

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
)

const long = `List pools, the nodes that offer the same: strategy, device, resource, replicas of one device, largest slice (SLICE), number of
nodes, and of the resource what they can allocate, what the pods on them request, and the room left (none on cordoned nodes).
-o wide adds the memory of a device, the nodes, and notes. A pool that is only declared or remembered has no node.

It takes the right to list nodes and, for what is requested and free, pods of every namespace. Pools that the cluster's default
policy declares and those that are remembered are listed if you may read the ConfigMaps of the system namespace. Who
may not list nodes sees the pools of the slices in one namespace.

-o json prints one document, {"apiVersion": "gpuslice.dev/v1", "kind": "PoolList", "items": [...], "errors": [...]}. An item has
name, strategy, resource, device, deviceMemory, usable (the largest slice), replicas, nodes, notes, allocatable, requested and
free (these three absent: unknown).`

const example = `  # what can I request, and where is room
  gpuslice pools

  # the nodes of each pool
  gpuslice pools -o wide

  # pools with room
  gpuslice pools -o json | jq '.items[] | select(.free > 0) | .name'`

// options are the command's flags.
type options struct {
	kube   kube.Flags
	output cli.Output
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "pools",
		Short:   "List what the nodes offer, and the room left",
		Long:    long,
		Example: example,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	o.output.Register(cmd, cli.Wide, cli.YAML, cli.Name, cli.JSONPath)
	o.kube.RegisterInstalled(cmd, s,
		"of the slices whose pools are listed if nodes may not be read (default: the context's, else \"default\")")
	return cmd
}

// pool is the offer of a pool's nodes, and its taken part: an item of -o json.
type pool struct {
	clusters.Pool
	Allocatable *int64 `json:"allocatable,omitempty"`
	Requested   *int64 `json:"requested,omitempty"`
	Free        *int64 `json:"free,omitempty"`
}

func (o *options) run(ctx context.Context, s cli.Streams) error {
	connection, err := o.kube.Connect(s)
	if err != nil {
		return err
	}
	r := reader{client: connection.Client, system: o.kube.System, streams: s}
	all, err := r.pools(ctx)
	if apierrors.IsForbidden(err) {
		r.fail(fmt.Sprintf("%v; shown are the pools of the slices in namespace %s", err, connection.Namespace))
		all, err = r.poolsOfSlices(ctx, connection.Namespace)
	}
	if err != nil {
		return err
	}
	if len(all) == 0 && (o.output.Format == "text" || o.output.Format == cli.Wide) {
		fmt.Fprintln(s.Err, "No pools found.")
	} else if err := o.print(s, all, r.unread); err != nil {
		return err
	}
	return cli.Tally{NoAnswer: len(r.unread) > 0}.Exit()
}

func (o *options) print(s cli.Streams, all []pool, unread []cli.Error) error {
	return o.output.Print(s.Out, cli.Answer{
		Document: cli.NewList("PoolList", all, unread...), Names: cli.Names(all, func(p pool) string { return "pool/" + p.Name }),
		Page: func() *cli.Page { return pageOf(all, o.output.Format == cli.Wide) },
	})
}

func pageOf(all []pool, wide bool) *cli.Page {
	header := []string{"POOL", "STRATEGY", "DEVICE", "RESOURCE", "REPLICAS", "SLICE", "NODES", "ALLOCATABLE", "REQUESTED", "FREE"}
	if wide {
		header = append(header, "DEVICE-MEMORY", "NODE-NAMES", "NOTES")
	}
	rows := [][]string{header}
	for _, p := range all {
		nodes := "?"
		if p.Allocatable != nil || p.ByClass {
			nodes = strconv.Itoa(len(p.Nodes))
		}
		row := []string{p.Name, string(p.Strategy), p.Device, p.Resource, cli.Count(int64(p.Replicas)), cli.Amount(p.Usable), nodes,
			known(p.Allocatable), known(p.Requested), known(p.Free)}
		if wide {
			row = append(row, cli.Amount(p.DeviceMemory), strings.Join(p.Nodes, ","), strings.Join(p.Notes, "; "))
		}
		rows = append(rows, row)
	}
	page := &cli.Page{}
	page.Table("", rows)
	return page
}

// known is a number; "?": it is unknown.
func known(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}
