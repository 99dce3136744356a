package inventory

import (
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// size is what an item takes of a file.
type size struct{ items, bytes, values int }

func sizeOf(item any) size {
	text, err := jsonv2.Marshal(item, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return size{} // Write reports it
	}
	return size{1, len(text) + 1, valuesOf(text)}
}

// valuesOf is at least the number of values of a text.
func valuesOf(text []byte) (n int) {
	for _, mark := range []byte("{[,") {
		n += bytes.Count(text, []byte{mark})
	}
	return n
}

func (s *size) add(o size) {
	s.items, s.bytes, s.values = s.items+o.items, s.bytes+o.bytes, s.values+o.values
}
func (s *size) subtract(o size) {
	s.items, s.bytes, s.values = s.items-o.items, s.bytes-o.bytes, s.values-o.values
}

// part is the part of a file that the size takes, by what it takes most of. The rest is for what is around the items.
func (s size) part() float64 {
	const forItems = 0.99
	return max(float64(s.items)/maxPods, float64(s.bytes)/(forItems*maxBytes), float64(s.values)/(forItems*maxValues))
}

// slim leaves out of a pod what it demanded of a node, and what its author wrote at any length: requests that no node can fulfil, an
// owner, slices of a promise that no build writes. It reports whether there was anything.
func (p *Pod) slim(offered map[string]bool) bool {
	some := len(p.Labels)+len(p.NodeSelector)+len(p.Tolerations)+len(p.Spread) > 0 || p.Affinity != nil
	p.Labels, p.NodeSelector, p.Tolerations, p.Spread, p.Affinity = nil, nil, nil, nil, nil
	for name := range p.Requests {
		if !offered[name] {
			delete(p.Requests, name)
			some = true
		}
	}
	if len(p.Owner.Kind)+len(p.Owner.Name)+len(p.SchedulerName) > 3*maxName {
		p.Owner, p.SchedulerName, some = Owner{}, "", true
	}
	if p.check() != nil {
		p.Slices, some = nil, true
	}
	return some
}

// offered are the resources that nodes have.
func (f *Fleet) offered() map[string]bool {
	all := map[string]bool{}
	for i := range f.Nodes {
		for name := range f.Nodes[i].Allocatable {
			all[name] = true
		}
	}
	for i := range f.Pools {
		all[f.Pools[i].Resource] = true
	}
	return all
}

// taken is what the pods of a namespace take.
type taken struct {
	size
	namespace string
	pods      []int // indexes of those that can go or be slim, the next one last
}

// mostFirst is a heap: first the largest.
type mostFirst []*taken

func (m mostFirst) Len() int { return len(m) }
func (m mostFirst) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(m[j].part(), m[i].part()), cmp.Compare(m[i].namespace, m[j].namespace)) < 0
}
func (m mostFirst) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *mostFirst) Push(x any)   { *m = append(*m, x.(*taken)) }
func (m *mostFirst) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

// trimming is a fleet on its way to what Read accepts.
type trimming struct {
	*Fleet
	nodes, offered map[string]bool
	sizes          []size         // of pods
	all            size           // of the file
	out            []bool         // pods that are left out
	changed        map[string]int // pods that are left out or slim, by namespace
}

// Trim leaves out pods that hold no node, or what others demanded of theirs, until Read accepts the rest: each that is too large or says
// what cannot be, and of the namespace that takes most, those that hold none, and the largest, first. So one tenant's pods do not keep a
// snapshot from being written. A pod that holds a node stays: a node without pods may be divided again. Trim adds notes to Unread, and
// returns them.
func (f *Fleet) Trim() (notes []string) {
	x := &trimming{Fleet: f, nodes: map[string]bool{}, offered: f.offered(),
		sizes: make([]size, len(f.Pods)), out: make([]bool, len(f.Pods)), changed: map[string]int{}}
	for i := range f.Nodes {
		x.nodes[f.Nodes[i].Name] = true
	}
	for _, other := range []any{f.Pools, f.Nodes, f.Quotas, f.Unread, f.Notes} {
		x.all.add(sizeOf(other))
	}
	x.all.items = 0
	x.shrink(x.byNamespace())
	kept := make([]Pod, 0, len(f.Pods))
	for i := range f.Pods {
		if !x.out[i] {
			kept = append(kept, f.Pods[i])
		}
	}
	f.Pods = kept
	notes = x.notes()
	f.Unread = append(f.Unread, notes...)
	return notes
}

// holds reports whether a pod holds a part of a node. Its author may have written the name of one that does not exist.
func (x *trimming) holds(i int) bool { return x.nodes[x.Pods[i].Node] && !x.Pods[i].Over() }

// reduce leaves a pod out, or makes it slim. It reports whether either could be done.
func (x *trimming) reduce(i int) bool {
	if x.out[i] = !x.holds(i); !x.out[i] && !x.Pods[i].slim(x.offered) {
		return false
	}
	x.changed[x.Pods[i].Namespace]++
	if x.sizes[i] = (size{}); !x.out[i] {
		x.sizes[i] = sizeOf(&x.Pods[i])
	}
	return true
}

// byNamespace reduces the pods that Read does not accept, whatever the others take, and returns what each namespace's then take.
func (x *trimming) byNamespace() (all mostFirst) {
	of := map[string]*taken{}
	for i := range x.Pods {
		s := of[x.Pods[i].Namespace]
		if s == nil {
			s = &taken{namespace: x.Pods[i].Namespace}
			of[s.namespace], all = s, append(all, s)
		}
		x.sizes[i] = sizeOf(&x.Pods[i])
		if x.sizes[i].bytes <= MaxItem && x.Pods[i].check() == nil || !x.reduce(i) {
			s.pods = append(s.pods, i)
		}
		s.add(x.sizes[i])
		x.all.add(x.sizes[i])
	}
	return all
}

// shrink reduces pods of the namespace that takes most until the file fits, or all are reduced.
func (x *trimming) shrink(most mostFirst) {
	if x.all.part() <= 1 {
		return
	}
	heap.Init(&most)
	for _, s := range most {
		slices.SortFunc(s.pods, x.compare)
	}
	for x.all.part() > 1 && len(most) > 0 {
		s := most[0]
		if len(s.pods) == 0 {
			heap.Pop(&most)
			continue
		}
		i := s.pods[len(s.pods)-1]
		s.pods = s.pods[:len(s.pods)-1]
		before := x.sizes[i]
		if x.reduce(i) {
			for _, sum := range []*size{&s.size, &x.all} {
				sum.subtract(before)
				sum.add(x.sizes[i])
			}
			heap.Fix(&most, 0)
		}
	}
}

// compare orders pods: those that hold a node, then the others, each with the largest last.
func (x *trimming) compare(a, b int) int {
	switch {
	case x.holds(a) && !x.holds(b):
		return -1
	case x.holds(b) && !x.holds(a):
		return 1
	}
	return cmp.Or(cmp.Compare(x.sizes[a].part(), x.sizes[b].part()), cmp.Compare(a, b))
}

// notes name the namespaces of which most pods were changed.
func (x *trimming) notes() (notes []string) {
	namespaces := slices.SortedFunc(maps.Keys(x.changed),
		func(a, b string) int { return cmp.Or(cmp.Compare(x.changed[b], x.changed[a]), cmp.Compare(a, b)) })
	const named = 20
	for _, namespace := range namespaces[:min(len(namespaces), named)] {
		notes = append(notes, fmt.Sprintf("pods of namespace %s are left out, or without labels and constraints if they hold a node, the largest first (%d): they are larger than %d KiB, say what cannot be, or its pods take most of what a snapshot can hold",
			namespace, x.changed[namespace], MaxItem>>10))
	}
	if more := len(namespaces) - named; more > 0 {
		notes = append(notes, fmt.Sprintf("so are pods of %d more namespaces", more))
	}
	return notes
}
