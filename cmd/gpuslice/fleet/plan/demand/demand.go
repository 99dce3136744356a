// Package demand is a fleet as a plan sees it: kinds of nodes, and pods with their requests.
package demand

import (
	"fmt"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Whole is a whole device in thousandths.
const Whole = 1000

// Kind holds the common properties of equal nodes.
type Kind struct {
	Model        string // of the devices; "": there is none
	Devices      int
	DeviceMemory int64 // MiB of one device; 0: not known
	MIG          bool  // they can be divided by MIG
	CPU          int64 // thousandths of a core
	Memory       int64 // MiB
	Pods         int64 // how many the node takes; 0: no limit is known, less: none
	Strategy     api.StrategyName
	Replicas     int              // of each device in today's layout; 0 and 1: devices are whole
	Offers       map[string]int64 // extended resources by name in today's layout
	Nodes        int              // that there are
}

// Node is a node of a kind.
type Node struct {
	Name    string
	Kind    int  // index of Fleet.Kinds
	Running int  // pods with GPUs that are on the node now, at the fleet's moment or not
	Added   bool // by a question: the cluster does not have the node
	Labels  map[string]string
}

// Pod is a pod's request.
type Pod struct {
	Namespace, Name string
	Priority        int32
	CPU             int64            // thousandths of a core
	Memory          int64            // MiB
	Devices         int              // whole devices, or 1 of which the pod needs a part; 0: none
	Share           int              // thousandths of a device that the pod needs at least; Whole: a whole one
	DeviceMemory    int64            // MiB of a device that the pod needs at least; 0: as Share has it
	Isolated        bool             // only a MIG instance or a whole device will do
	Requests        map[string]int64 // extended resources by name, in today's layout
	Pool            string           // whose units the pod holds or wants today; "": none
	Units           int64
	Allowed         []bool // by kind, shared between pods; nil: all kinds
	Use             *Use   // nil: nothing was measured
	Node            int    // index of Fleet.Nodes where the pod runs, from 1; 0: it waits
}

// Use is the measured use of a pod, on all of its devices.
type Use struct {
	Peak     int64    // MiB
	Utilized *float64 // of multiprocessors, the sum over devices; nil: unknown
}

// Fleet is nodes and the pods of one moment. Callers must not change the targets of its slices.
type Fleet struct {
	Kinds []Kind
	Nodes []Node
	Pods  []Pod
	// Units and Models are by pool of today's layout: the units of one device, and its model ("": any).
	Units  map[string]int64
	Models map[string]string
}

// Add adds a node of a kind that is there.
func (f *Fleet) Add(name string, kind int) {
	f.Nodes = append(f.Nodes, Node{Name: name, Kind: kind})
	f.Kinds[kind].Nodes++
}

// Devices is how many devices are there.
func (f *Fleet) Devices() (n int) {
	for _, node := range f.Nodes {
		n += f.Kinds[node.Kind].Devices
	}
	return n
}

// Today is how many devices the pods need by today's layout, by model ("": any): of each pool as many units as they hold or want, as if
// there were enough.
func (f *Fleet) Today() map[string]int {
	devices := map[string]int{}
	units := map[string]int64{}
	for i := range f.Pods {
		if p := &f.Pods[i]; p.Pool != "" && !f.FitsNowhere(p) {
			units[p.Pool] += p.Units
		}
	}
	for pool, n := range units {
		each := max(f.Units[pool], 1)
		devices[f.Models[pool]] += int((n + each - 1) / each)
	}
	return devices
}

// Part reports whether the pod needs only a part of one device.
func (p *Pod) Part() bool { return p.Devices == 1 && p.Share < Whole }

// MayUse reports whether the pod's constraints allow a kind.
func (p *Pod) MayUse(kind int) bool { return p.Allowed == nil || p.Allowed[kind] }

// ShareOf is the part of a device of the kind that the pod needs, in thousandths and rounded up; above Whole: it does not fit.
func (p *Pod) ShareOf(k *Kind) int {
	if p.DeviceMemory == 0 || k.DeviceMemory == 0 {
		return p.Share
	}
	return max(p.Share, int((p.DeviceMemory*Whole+k.DeviceMemory-1)/k.DeviceMemory))
}

// Fits reports whether an empty node of the kind can take the pod.
func (f *Fleet) Fits(p *Pod, kind int) bool {
	k := &f.Kinds[kind]
	return k.Nodes > 0 && p.MayUse(kind) && p.Devices <= k.Devices && p.CPU <= k.CPU &&
		p.Memory <= k.Memory && (p.Devices == 0 || p.ShareOf(k) <= Whole)
}

// FitsNowhere reports whether no kind can take the pod.
func (f *Fleet) FitsNowhere(p *Pod) bool {
	for kind := range f.Kinds {
		if f.Fits(p, kind) {
			return false
		}
	}
	return true
}

// Used are the kinds that have nodes with devices, in their order.
func (f *Fleet) Used() (kinds []int) {
	for kind := range f.Kinds {
		if k := &f.Kinds[kind]; k.Nodes > 0 && k.Devices > 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Reason is why no kind of node can take a pod.
func (f *Fleet) Reason(p *Pod) string {
	if len(f.Nodes) == 0 {
		return "there is no node"
	}
	for _, c := range []struct {
		fits func(kind int) bool
		text string
	}{
		{func(int) bool { return true }, "its constraints name no node that is there"},
		{func(kind int) bool { return p.Devices <= f.Kinds[kind].Devices }, fmt.Sprintf("no such node has %d GPUs", p.Devices)},
		{func(kind int) bool { return p.Devices == 0 || p.ShareOf(&f.Kinds[kind]) <= Whole },
			fmt.Sprintf("no GPU of such nodes has %d MiB", p.DeviceMemory)},
		{func(kind int) bool { return p.CPU <= f.Kinds[kind].CPU }, fmt.Sprintf("no such node has %d thousandths of a core", p.CPU)},
		{func(kind int) bool { return p.Memory <= f.Kinds[kind].Memory }, fmt.Sprintf("no such node has %d MiB of memory", p.Memory)},
	} {
		fits := false
		for kind := range f.Kinds {
			fits = fits || f.Kinds[kind].Nodes > 0 && p.MayUse(kind) && c.fits(kind)
		}
		if !fits {
			return c.text
		}
	}
	return "no node has all that it requests"
}
