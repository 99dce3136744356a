package draw

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
)

// builder makes a view.
type builder struct {
	view   *view
	fleet  *inventory.Fleet
	pools  map[string]int // by name
	byNode map[string][]*inventory.Pod
	spaces map[string]*namespace
}

func (b *builder) pod(p *inventory.Pod) {
	if p.Over() {
		return
	}
	space := b.spaces[p.Namespace]
	if space == nil {
		space = &namespace{Name: p.Namespace}
		b.spaces[p.Namespace] = space
	}
	space.Pods++
	if p.Node != "" {
		b.byNode[p.Node] = append(b.byNode[p.Node], p)
		return
	}
	space.Waiting++
	b.view.Waiting = append(b.view.Waiting, waiting{p.Namespace, p.Name, b.wants(p), stamp(p.Created), p.Waiting})
}

// wants describes a pod's request in a few words.
func (b *builder) wants(p *inventory.Pod) string {
	var words []string
	for _, s := range p.Slices {
		if s.Memory > 0 {
			words = append(words, s.Memory.Human())
		}
	}
	if len(words) == 0 {
		for _, name := range slices.Sorted(maps.Keys(p.Requests)) {
			if b.fleet.IsGPU(name) {
				words = append(words, fmt.Sprintf("%d of %s", p.Requests[name], name))
			}
		}
	}
	if len(words) == 0 && p.Claims > 0 {
		words = append(words, fmt.Sprintf("%d claims", p.Claims))
	}
	return strings.Join(words, ", ")
}

// board are the devices of one node while slices are placed.
type board struct {
	devices []spot
	byUUID  map[string]int
	free    map[int]int // cells that no slice holds, by pool
	full    map[int]int // how many devices at the beginning have none, by pool
}

// spot is one device.
type spot struct {
	pool   int     // -1: none offers it
	left   float64 // that no cell covers
	cells  []cell  // each alone
	held   int     // how many of the first are a slice's, at least
	claims bool    // cells are made of what is left
	known  bool    // it has a UUID
}

// node places what runs on a node. Kubernetes records a pod's node and not its device: a slice is placed on the device on which it was
// measured, and the others on the first that have room.
func (b *builder) node(n *inventory.Node) node {
	out := node{Name: n.Name, Product: n.GPUs.Product, Devices: []device{}}
	switch {
	case n.NotReady:
		out.State = "not ready"
	case n.Unschedulable:
		out.State = "cordoned"
	}
	at := b.board(n)
	var unplaced []int
	for _, known := range []bool{true, false} {
		for _, i := range b.slicesOn(n, known) {
			if !at.place(&b.view.Slices[i], i, b.fleet) {
				unplaced = append(unplaced, i)
			}
		}
	}
	out.Extra = unplaced
	for i := range at.devices {
		out.Devices = append(out.Devices, b.finish(&out, &at.devices[i]))
	}
	return out
}

// board divides the node's devices as its pools do.
func (b *builder) board(n *inventory.Node) *board {
	at, left := &board{byUUID: map[string]int{}, free: map[int]int{}, full: map[int]int{}}, int64(maxCells)
	for _, o := range n.Offers {
		i, units := b.pools[o.Pool], min(o.Units, left)
		left -= units
		at.offer(&b.fleet.Pools[i], i, units)
	}
	for len(at.devices) < n.GPUs.Count {
		at.devices = append(at.devices, spot{pool: -1, left: 1})
	}
	return at
}

// Bounds of a drawing: the cells of one node, and the slices of a fleet.
const (
	maxCells  = 4096
	maxSlices = 1 << 19
)

func (at *board) offer(p *inventory.Pool, i int, units int64) {
	if p.Claims {
		for range units {
			at.devices = append(at.devices, spot{pool: i, left: 1, claims: true})
		}
		return
	}
	share := min(p.Share, 1)
	if share <= 0 {
		share = 1
	}
	at.free[i] += int(units)
	d := 0 // a device without room for one unit has none for the next
	for range units {
		const rounding = 1e-6
		// MIG instances of several pools lie on one device; replicas of two pools never do
		for d < len(at.devices) &&
			(at.devices[d].left < share-rounding || at.devices[d].pool != i && (p.MIGProfile == "" || at.devices[d].claims)) {
			d++
		}
		if d == len(at.devices) {
			at.devices = append(at.devices, spot{pool: i, left: 1})
		}
		at.devices[d].left -= share
		at.devices[d].cells = append(at.devices[d].cells, cell{Share: share, Free: i + 1}) // of pool i, until finish
	}
}

// slicesOn adds the slices of the pods on a node whose device is known, or is not.
func (b *builder) slicesOn(n *inventory.Node, known bool) (added []int) {
	for _, p := range b.byNode[n.Name] {
		all := b.slicesOf(p, n)
		pod := pod{Namespace: p.Namespace, Name: p.Name, Since: stamp(p.Bound)}
		if p.Owner.Name != "" {
			pod.Owner = p.Owner.Kind + "/" + p.Owner.Name
		}
		first := true
		for _, s := range all {
			if (s.device != "") != known {
				continue
			}
			if first {
				first = false
				b.view.Pods = append(b.view.Pods, pod)
			}
			s.Pod = len(b.view.Pods) - 1
			b.view.Slices = append(b.view.Slices, s)
			added = append(added, len(b.view.Slices)-1)
		}
	}
	return added
}

// slicesOf are the units that a pod on the node holds, one for each.
func (b *builder) slicesOf(p *inventory.Pod, n *inventory.Node) (all []slice) {
	for i := range p.Slices {
		all = append(all, b.unitsOf(&p.Slices[i], n, len(all))...)
	}
	if len(p.Slices) > 0 {
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(p.Requests)) {
		if b.fleet.IsGPU(name) {
			all = append(all, b.unitsOf(&inventory.Slice{Resource: name, Count: p.Requests[name]}, n, len(all))...)
		}
	}
	return all
}

// unitsOf are the units of one container. Those of a granular pool share the slice, and each whole device has its own use.
func (b *builder) unitsOf(c *inventory.Slice, n *inventory.Node, before int) (all []slice) {
	one := slice{Container: c.Container, Pool: b.poolOf(c, n), Memory: int64(c.Memory), Tier: string(c.Observed)}
	count := max(c.Count, 1)
	parts := int64(1)
	if one.Pool >= 0 && b.fleet.Pools[one.Pool].Granular {
		parts = count
	}
	one.Memory /= parts
	for k := range min(count, int64(maxCells-before), int64(maxSlices-len(b.view.Slices)-before)) {
		unit := one
		for j, u := range c.Usage {
			if int64(len(c.Usage)) == count && int64(j) != k {
				continue
			}
			unit.Known, unit.device = true, u.Device
			unit.Used, unit.Peak = max(unit.Used, u.UsedBytes>>20/parts), max(unit.Peak, u.PeakBytes>>20/parts)
		}
		all = append(all, unit)
	}
	return all
}

// poolOf is the pool of the node that a container's slice is in: the one that was planned, else the one that offers the resource.
func (b *builder) poolOf(c *inventory.Slice, n *inventory.Node) int {
	found := -1
	for _, o := range n.Offers {
		i := b.pools[o.Pool]
		if o.Pool == c.Pool {
			return i
		}
		if found < 0 && c.Resource != "" && b.fleet.Pools[i].Resource == c.Resource {
			found = i
		}
	}
	return found
}

// place puts slice number i on a device; false: none has room.
func (at *board) place(s *slice, i int, f *inventory.Fleet) bool {
	if s.Pool < 0 {
		return false
	}
	need, p := 0.0, &f.Pools[s.Pool]
	if p.Claims && p.DeviceMemory > 0 {
		need = min(float64(s.Memory+int64(p.Reserve))/float64(p.DeviceMemory), 1)
	}
	if !p.Claims && at.free[s.Pool] == 0 {
		return false
	}
	placed := s.device != "" && at.measured(s, i, need) || at.first(s.Pool, i, need, p.Claims)
	if placed {
		at.free[s.Pool]--
	}
	return placed
}

// measured puts slice number i on the device of its measurement: the one with that UUID, else the first without a UUID. Where processes
// gave one UUID to several devices, it may have no room.
func (at *board) measured(s *slice, i int, need float64) bool {
	if d, known := at.byUUID[s.device]; known {
		return at.devices[d].put(s.Pool, i, need)
	}
	for d := range at.devices {
		if one := &at.devices[d]; !one.known && one.put(s.Pool, i, need) {
			at.byUUID[s.device], one.known = d, true
			return true
		}
	}
	return false
}

// first puts slice number i on the first device with room.
func (at *board) first(pool, i int, need float64, claims bool) bool {
	for d := at.full[pool]; d < len(at.devices); d++ {
		if at.devices[d].put(pool, i, need) {
			return true
		}
		if !claims && d == at.full[pool] { // a device without a free cell never has one again
			at.full[pool]++
		}
	}
	return false
}

func (d *spot) put(pool, i int, need float64) bool {
	if d.claims {
		if d.pool != pool || need > d.left+1e-6 {
			return false
		}
		d.left -= need
		d.cells = append(d.cells, cell{Share: need, Slice: i})
		return true
	}
	for d.held < len(d.cells) && d.cells[d.held].Free == 0 {
		d.held++
	}
	for c := d.held; c < len(d.cells); c++ {
		if one := &d.cells[c]; one.Slice == 0 && one.Free == pool+1 {
			one.Slice, one.Free = i, 0
			return true
		}
	}
	return false
}

// finish counts what became of a device, and joins free cells that are alike.
func (b *builder) finish(n *node, d *spot) device {
	out, sums := device{Pool: d.pool}, &b.view.Sums
	sums.Devices++
	free := 0.0
	if d.claims && d.left > 1e-6 {
		d.cells = append(d.cells, cell{Share: d.left, Free: 1})
		d.left = 0
	}
	for _, c := range d.cells {
		if c.Slice > 0 {
			b.count(n, c)
			out.Cells = append(out.Cells, c)
			continue
		}
		free += c.Share
		if k := len(out.Cells) - 1; k >= 0 && out.Cells[k].Free > 0 && out.Cells[k].Share == c.Share {
			out.Cells[k].Free++
			continue
		}
		c.Free = 1
		out.Cells = append(out.Cells, c)
	}
	if n.State != "" {
		sums.Closed += free
	} else {
		sums.Free += free
		n.Free += free
	}
	sums.Closed += max(d.left, 0)
	return out
}

// count adds a cell that a slice holds to the sums.
func (b *builder) count(n *node, c cell) {
	s := &b.view.Slices[c.Slice]
	space := b.spaces[b.view.Pods[s.Pod].Namespace]
	space.Held += c.Share
	has := largestSlice(&b.fleet.Pools[s.Pool])
	if b.fleet.Pools[s.Pool].Claims {
		has = s.Memory
	}
	sums, slice := &b.view.Sums, c.Share
	if s.Memory > 0 && has > 0 {
		slice = c.Share * min(float64(s.Memory)/float64(has), 1)
	}
	sums.Rounding += c.Share - slice
	if !s.Known || has <= 0 {
		sums.Unknown += slice
		space.Unknown += slice
		return
	}
	used := min(c.Share*float64(s.Peak)/float64(has), slice)
	sums.Used += used
	sums.Unused += slice - used
	space.Used += used
	n.Unused += slice - used
}
