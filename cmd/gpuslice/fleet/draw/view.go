package draw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// view is the script's picture of one fleet. Memory is in MiB, shares and sums in devices. It refers to pods, slices and pools by
// their place in its lists.
type view struct {
	Title      string      `json:"title"`
	Taken      string      `json:"taken"`
	Notes      []string    `json:"notes"`
	Pools      []pool      `json:"pools"`
	Nodes      []node      `json:"nodes"`
	Pods       []pod       `json:"pods"`
	Slices     []slice     `json:"slices"`
	Waiting    []waiting   `json:"waiting"`
	Quotas     []figure    `json:"quotas"`
	Sums       sums        `json:"sums"`
	Namespaces []namespace `json:"namespaces"`
}

type pool struct {
	Name     string `json:"name"`
	Strategy string `json:"strategy"`
	Product  string `json:"product"`
	Largest  int64  `json:"largest"` // the largest slice; 0: unknown
}

type node struct {
	Name    string   `json:"name"`
	Product string   `json:"product"`
	State   string   `json:"state,omitempty"` // why it takes no pods; "": it does
	Devices []device `json:"devices"`
	Extra   []int    `json:"extra,omitempty"` // slices that fit no device: the node has more than it offers
	Free    float64  `json:"free"`
	Unused  float64  `json:"unused"` // held by slices, and never used
}

// device is one GPU: what divides it, from the left. What no cell covers is not offered.
type device struct {
	Pool  int    `json:"pool"` // -1: none offers it
	Cells []cell `json:"cells,omitempty"`
}

// cell is a part of a device that a slice holds, or Free such parts in a row.
type cell struct {
	Share float64 `json:"share"` // of one
	Slice int     `json:"slice,omitempty"`
	Free  int     `json:"free,omitempty"`
}

type pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Owner     string `json:"owner,omitempty"`
	Since     string `json:"since,omitempty"`
}

// slice is the slice of one container. The first of a view is none, so that 0 means no slice.
type slice struct {
	Pod       int    `json:"pod"`
	Container string `json:"container,omitempty"`
	Pool      int    `json:"pool"`
	Memory    int64  `json:"memory,omitempty"` // 0: whole units of the pool
	Used      int64  `json:"used,omitempty"`
	Peak      int64  `json:"peak,omitempty"`
	Known     bool   `json:"known,omitempty"` // Used and Peak are measured
	Tier      string `json:"tier,omitempty"`

	device string // UUID of the first device on which it was measured
}

type waiting struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Wants     string `json:"wants"`
	Since     string `json:"since"`
	Why       string `json:"why"`
}

type figure struct {
	Budget    string  `json:"budget"`
	Quota     string  `json:"quota"`
	Dimension string  `json:"dimension"`
	Used      string  `json:"used"`
	Limit     string  `json:"limit"`
	Taken     float64 `json:"taken"` // of the limit
}

// sums are how the devices of a fleet are used. The parts add up to Devices.
type sums struct {
	Nodes    int     `json:"nodes"`
	Devices  float64 `json:"devices"`
	Used     float64 `json:"used"`     // at the slices' peaks
	Unused   float64 `json:"unused"`   // in slices, above what they ever used
	Unknown  float64 `json:"unknown"`  // in slices of which the use is not measured
	Rounding float64 `json:"rounding"` // in replicas and instances that are larger than their slices
	Free     float64 `json:"free"`     // offered, and held by no pod
	Closed   float64 `json:"closed"`   // not offered, or on nodes that take no pods
}

type namespace struct {
	Name    string  `json:"name"`
	Pods    int     `json:"pods"`
	Held    float64 `json:"held"`
	Used    float64 `json:"used"`
	Unknown float64 `json:"unknown"`
	Waiting int     `json:"waiting"`
}

// viewOf is the picture of a fleet.
func viewOf(title string, f *inventory.Fleet) *view {
	v := &view{Title: title, Taken: stamp(f.Taken), Notes: cli.NonNil(slices.Concat(f.Unread, f.Notes)),
		Pools: []pool{}, Nodes: []node{}, Pods: []pod{}, Slices: []slice{{}}, Waiting: []waiting{}, Quotas: []figure{}}
	b := builder{view: v, fleet: f, pools: map[string]int{}, byNode: map[string][]*inventory.Pod{}, spaces: map[string]*namespace{}}
	for i := range f.Pools {
		p := &f.Pools[i]
		b.pools[p.Name] = i
		v.Pools = append(v.Pools, pool{p.Name, string(p.Strategy), p.Product, largestSlice(p)})
	}
	for i := range f.Pods {
		b.pod(&f.Pods[i])
	}
	for i := range f.Nodes {
		v.Nodes = append(v.Nodes, b.node(&f.Nodes[i]))
	}
	for _, name := range slices.Sorted(maps.Keys(b.spaces)) {
		v.Namespaces = append(v.Namespaces, *b.spaces[name])
	}
	slices.SortStableFunc(v.Namespaces, func(a, b namespace) int { return cmp.Compare(b.Held, a.Held) })
	v.Namespaces = cli.NonNil(v.Namespaces)
	for _, q := range f.Quotas {
		for _, fig := range q.Figures {
			v.Quotas = append(v.Quotas, figureOf(q.Budget, fig))
		}
	}
	v.Sums.Nodes = len(v.Nodes)
	if len(v.Slices) >= maxSlices {
		v.Notes = append(slices.Clone(v.Notes), fmt.Sprintf("there are more than the %d slices that are drawn", maxSlices))
	}
	return v
}

// largestSlice is the largest slice of one unit.
func largestSlice(p *inventory.Pool) int64 {
	if p.Granular {
		return int64(p.Slice) / int64(max(p.Replicas, 1))
	}
	return int64(cmp.Or(p.Slice, p.InstanceMemory, p.DeviceMemory))
}

// stamp is a time for people; "": it is not known.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

func figureOf(budget string, f quota.Figure) figure {
	out := figure{Budget: budget, Quota: f.Quota, Dimension: f.Dimension, Used: f.Text(f.Used + f.Reserved), Limit: f.Text(f.Limit), Taken: 1}
	if f.Limit > 0 {
		out.Taken = min((f.Used+f.Reserved)/f.Limit, 1)
	}
	if part := strings.TrimPrefix(f.Part, "pool/"); part != "" {
		out.Quota += ", " + part
	}
	return out
}
