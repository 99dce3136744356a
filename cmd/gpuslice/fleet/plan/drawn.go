package plan

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/draw"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/proposal"
	"github.com/gpuslice/gpuslice/policies/api"
)

// writePage writes --page: the nodes with the plan's pods, as they are divided today and by the plan.
func (o *options) writePage(s cli.Streams, in *input, p *proposal.Plan) error {
	c := canvas{fleet: in.Fleet, read: in.read, pods: map[string]*inventory.Pod{}}
	for i := range in.read.Pods {
		read := &in.read.Pods[i]
		c.pods[read.Namespace+"/"+read.Name] = read
	}
	today, planned := c.drawn(p.Now), c.drawn(p.Next)
	return cli.WriteFile(o.page, s.Out, func(out io.Writer) error {
		return draw.Page(out, draw.Fleet{Title: "today", Fleet: today}, draw.Fleet{Title: "planned", Fleet: planned})
	})
}

// canvas makes fleets of what a plan assigns.
type canvas struct {
	fleet *demand.Fleet
	read  *inventory.Fleet
	pods  map[string]*inventory.Pod // that were read, by namespace and name
}

// drawn is the fleet with the pods where an assignment has them.
func (c *canvas) drawn(a *layout.Assignment) *inventory.Fleet {
	out, pools := inventory.New(c.read.Taken), map[string]bool{}
	for i := range a.Nodes {
		k := &c.fleet.Kinds[c.fleet.Nodes[i].Kind]
		if k.Devices == 0 {
			continue
		}
		n := inventory.Node{Name: c.fleet.Nodes[i].Name, GPUs: inventory.GPUs{Product: k.Model, Count: k.Devices, Memory: api.MiB(k.DeviceMemory)}}
		offer := func(pool inventory.Pool, units int64) {
			n.Offers = append(n.Offers, inventory.Offer{Pool: pool.Name, Units: units})
			if !pools[pool.Name] {
				pools[pool.Name] = true
				out.Pools = append(out.Pools, pool)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(a.Nodes[i].Extended)) {
			if units := a.Nodes[i].Extended[name]; units != 0 {
				offer(poolOf(k, a.Forms[i].Strategy, name, units), units)
			}
		}
		if len(a.Nodes[i].Parts) > 0 {
			offer(claims(k), int64(k.Devices))
		}
		out.Nodes = append(out.Nodes, n)
	}
	for i := range a.Pods {
		if c.fleet.Pods[i].Devices > 0 {
			out.Pods = append(out.Pods, c.pod(a, i))
		}
	}
	out.Sort()
	return out
}

// poolOf is the pool of a resource of which a node of a kind has so many units. Where the memory of a device is not known, so is that
// of its parts.
func poolOf(k *demand.Kind, strategy api.StrategyName, resource string, units int64) inventory.Pool {
	p := inventory.Pool{Product: k.Model, DeviceMemory: api.MiB(k.DeviceMemory),
		Slice: api.MiB(k.DeviceMemory), Resource: resource, Strategy: layout.Exclusive, Replicas: 1, Share: 1}
	p.Name = k.Model + ", whole"
	if profile, share, memory := instance(k, resource); profile != "" {
		p.Name, p.Strategy, p.MIGProfile, p.Share = k.Model+", MIG "+profile, layout.MIG, profile, share
		p.Slice, p.InstanceMemory = api.MiB(memory), api.MiB(memory)
		return p
	}
	if replicas := units / int64(k.Devices); replicas > 1 {
		p.Name, p.Strategy = fmt.Sprintf("%s, %s, %d replicas", k.Model, strategy, replicas), strategy
		p.Replicas, p.Share, p.Slice = int(replicas), 1/float64(replicas), p.Slice/api.MiB(replicas)
	}
	return p
}

// instance is the MIG profile of a resource, its part of the device, and its memory; "": it is none.
func instance(k *demand.Kind, resource string) (profile string, share float64, memory int64) {
	name := strings.TrimPrefix(resource, nvidia.MIGPrefix)
	if g := layout.GeometryOf(k.Model, k.DeviceMemory); g != nil {
		for _, p := range g.Profiles {
			if p.Name == name {
				return name, float64(p.Size) / float64(g.Slices), p.Memory
			}
		}
	}
	return "", 0, 0
}

func claims(k *demand.Kind) inventory.Pool {
	return inventory.Pool{Name: k.Model + ", claims", Product: k.Model, DeviceMemory: api.MiB(k.DeviceMemory),
		Slice: api.MiB(k.DeviceMemory), Strategy: layout.Claim, Claims: true}
}

// pod is a pod where an assignment has it, with its measured use.
func (c *canvas) pod(a *layout.Assignment, i int) inventory.Pod {
	p, requested, at := &c.fleet.Pods[i], &a.Pods[i], a.Placed[i]
	out := inventory.Pod{Namespace: p.Namespace, Name: p.Name, Phase: corev1.PodPending, Requests: requested.Extended}
	var usage []inventory.Usage
	if read := c.pods[p.Namespace+"/"+p.Name]; read != nil {
		out.Owner, out.Created, out.Bound = read.Owner, read.Created, read.Bound
		for _, s := range read.Slices {
			usage = append(usage, s.Usage...)
		}
	}
	if at < 0 {
		out.Waiting = "no node that it may use has room left for it"
		if c.fleet.FitsNowhere(p) {
			out.Waiting = c.fleet.Reason(p)
		}
		return out
	}
	k := &c.fleet.Kinds[c.fleet.Nodes[at].Kind]
	out.Node, out.Phase = c.fleet.Nodes[at].Name, corev1.PodRunning
	memory := api.MiB(0)
	if p.Part() {
		memory = api.MiB(int64(min(p.ShareOf(k), demand.Whole)) * k.DeviceMemory / demand.Whole)
	}
	if requested.Part > 0 {
		out.Slices = []inventory.Slice{{Pool: claims(k).Name, Count: 1,
			Memory: api.MiB(requested.Part * k.DeviceMemory / demand.Whole), Usage: usage}}
	}
	for _, name := range slices.Sorted(maps.Keys(requested.Extended)) {
		pool := poolOf(k, a.Forms[at].Strategy, name, a.Nodes[at].Extended[name])
		out.Slices = append(out.Slices, inventory.Slice{Pool: pool.Name, Count: requested.Extended[name], Memory: memory, Usage: usage})
	}
	return out
}
