package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Bounds on the fields of an object.
const (
	MaxQuantity = 1 << 53 // of a resource: the largest integer that every reader of JSON has exactly
	MaxGPUs     = 1024    // of a node
	MaxUnits    = 1 << 20 // of a pool on a node

	maxText    = 4 << 10
	maxName    = 253
	maxSlices  = 64      // of a pod: so many containers may have one
	maxAllGPUs = 1 << 18 // and as many times eight units
)

// check reports values that no cluster has, beside the checks of each item.
func (f *Fleet) check() error {
	pools := map[string]bool{}
	for i := range f.Pools {
		pools[f.Pools[i].Name] = true
	}
	nodes, gpus, units := map[string]bool{}, 0, int64(0)
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if nodes[n.Name] {
			return fmt.Errorf("two nodes have the name %q", n.Name)
		}
		nodes[n.Name] = true
		for _, o := range n.Offers {
			if !pools[o.Pool] {
				return fmt.Errorf("node %q offers pool %q, which is not in the snapshot", n.Name, o.Pool)
			}
			units += o.Units
		}
		if gpus += n.GPUs.Count; gpus > maxAllGPUs || units > 8*maxAllGPUs {
			return fmt.Errorf("more than %d GPUs or %d units", maxAllGPUs, 8*maxAllGPUs)
		}
	}
	type podName struct{ namespace, name string }
	pods := map[podName]bool{}
	for i := range f.Pods {
		p := podName{f.Pods[i].Namespace, f.Pods[i].Name}
		if pods[p] {
			return fmt.Errorf("two pods have the name \"%s/%s\"", p.namespace, p.name)
		}
		pods[p] = true
	}
	return nil
}

// Sort puts everything in the order of names.
func (f *Fleet) Sort() {
	slices.SortStableFunc(f.Pools, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func checkText(text *string) error {
	if len(*text) > maxText {
		return fmt.Errorf("a text of %d bytes, at most %d", len(*text), maxText)
	}
	return nil
}

func checkName(what string, names ...string) error {
	if names[0] == "" {
		return fmt.Errorf("a %s without a name", what)
	}
	for _, name := range names {
		if len(name) > maxName {
			return fmt.Errorf("%s %.60q...: a name of %d bytes, at most %d", what, name, len(name), maxName)
		}
	}
	return nil
}

func (p *Pool) check() error {
	amounts := Resources{"deviceMemory": int64(p.DeviceMemory), "instanceMemory": int64(p.InstanceMemory),
		"slice": int64(p.Slice), "reserve": int64(p.Reserve)}
	if p.Share < 0 || p.Share > 1 {
		return fmt.Errorf("pool %q: a unit is %g of a device, accepted: 0 to 1", p.Name, p.Share)
	}
	if p.Replicas < 0 || p.Replicas > MaxUnits {
		return fmt.Errorf("pool %q: %d replicas, accepted: 0 to %d", p.Name, p.Replicas, MaxUnits)
	}
	return errors.Join(checkName("pool", p.Name), amounts.check("pool", p.Name))
}

func (n *Node) check() error {
	if n.GPUs.Count < 0 || n.GPUs.Count > MaxGPUs || n.GPUs.Memory < 0 {
		return fmt.Errorf("node %q: %d GPUs of %s, accepted: 0 to %d", n.Name, n.GPUs.Count, n.GPUs.Memory, MaxGPUs)
	}
	for _, o := range n.Offers {
		if o.Units < 0 || o.Units > MaxUnits {
			return fmt.Errorf("node %q: %d units of pool %q, accepted: 0 to %d", n.Name, o.Units, o.Pool, MaxUnits)
		}
	}
	return errors.Join(checkName("node", n.Name), n.Allocatable.check("node", n.Name), n.Others.check("node", n.Name))
}

func (p *Pod) check() error {
	if len(p.Slices) > maxSlices {
		return fmt.Errorf("pod %q: %d slices, at most %d", p.Name, len(p.Slices), maxSlices)
	}
	for i := range p.Slices {
		s := &p.Slices[i]
		if s.Fraction < 0 || s.Fraction > 1 {
			return fmt.Errorf("pod %q: %g of a device, accepted: 0 to 1", p.Name, s.Fraction)
		}
		amounts := Resources{"count": s.Count, "memory": int64(s.Memory), "requested": int64(s.Requested),
			"limit": int64(s.Limit), "compute": int64(s.Compute)}
		if err := errors.Join(checkName("container of pod "+p.Name,
			s.Container, s.Pool, s.Resource, string(s.Strategy), string(s.Tier), string(s.Observed)), amounts.check("pod", p.Name)); err != nil {
			return err
		}
		for _, u := range s.Usage {
			if u.UsedBytes < 0 || u.PeakBytes < 0 || u.UsedBytes > MaxQuantity || u.PeakBytes > MaxQuantity {
				return fmt.Errorf("pod %q: usage of %d bytes, accepted: 0 to %d", p.Name, u.UsedBytes, int64(MaxQuantity))
			}
			if r := u.Utilization; r != nil && !(*r >= 0 && *r <= 1) { // NaN, too
				return fmt.Errorf("pod %q: a utilization of %g, accepted: 0 to 1", p.Name, *r)
			}
		}
	}
	if p.Claims < 0 {
		return fmt.Errorf("pod %q: %d claims", p.Name, p.Claims)
	}
	return errors.Join(checkName("pod", p.Name, p.Namespace, p.Node), p.Requests.check("pod", p.Name))
}

func (q *Quota) check() error {
	for i := range q.Figures {
		for _, n := range []float64{q.Figures[i].Limit, q.Figures[i].Used, q.Figures[i].Reserved} {
			if !(n >= 0 && n <= math.MaxFloat64) { // NaN, too
				return fmt.Errorf("budget %q: a figure of %g, accepted: 0 and above", q.Budget, n)
			}
		}
	}
	return checkName("budget", q.Budget)
}

func (r Resources) check(what, name string) error {
	for resource, n := range r {
		if n < 0 || n > MaxQuantity {
			return fmt.Errorf("%s %q: %d of %.60q, accepted: 0 to %d", what, name, n, resource, int64(MaxQuantity))
		}
	}
	return nil
}
