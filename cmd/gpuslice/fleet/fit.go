package fleet

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

// part is the part of a file that the size takes, by what it takes most of. Some room stays for what stands around the items.
func (s size) part() float64 {
	const room = 0.99
	return max(float64(s.items)/maxPods, float64(s.bytes)/(room*maxBytes), float64(s.values)/(room*maxValues))
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

// share is what the pods of a namespace take.
type share struct {
	size
	namespace string
	pods      []int // indexes of those that can go or be slim, the next one last
}

// shares are a heap: first the largest.
type shares []*share

func (s shares) Len() int { return len(s) }
func (s shares) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(s[j].part(), s[i].part()), cmp.Compare(s[i].namespace, s[j].namespace)) < 0
}
func (s shares) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *shares) Push(x any)   { *s = append(*s, x.(*share)) }
func (s *shares) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// Fit leaves out pods that hold no node, or what others demanded of theirs, until Read accepts the rest: each that is too large or says
// what cannot be, and of the namespace that takes most, those that hold none, and the largest, first. So one tenant's pods do not keep a
// snapshot from being written. A pod that holds a node stays: a node without pods may be divided again. Fit adds notes to Unread, and
// returns them.
func (f *Fleet) Fit() (notes []string) {
	all := sizeOf(f.Pools)
	all.add(sizeOf(f.Nodes))
	all.add(sizeOf(f.Quotas))
	all.add(sizeOf(f.Unread))
	all.items = 0
	sizes, out, left, of := make([]size, len(f.Pods)), make([]bool, len(f.Pods)), map[string]int{}, map[string]*share{}
	offered := f.offered()
	holds := func(i int) bool { return f.Pods[i].Node != "" && !f.Pods[i].Over() }
	// reduce reports whether a pod is left out, or slim.
	reduce := func(i int) bool {
		if out[i] = !holds(i); !out[i] && !f.Pods[i].slim(offered) {
			return false
		}
		left[f.Pods[i].Namespace]++
		if sizes[i] = (size{}); !out[i] {
			sizes[i] = sizeOf(&f.Pods[i])
		}
		return true
	}
	for i := range f.Pods {
		namespace := f.Pods[i].Namespace
		if of[namespace] == nil {
			of[namespace] = &share{namespace: namespace}
		}
		sizes[i] = sizeOf(&f.Pods[i])
		if sizes[i].bytes <= MaxItem && f.Pods[i].check() == nil || !reduce(i) {
			of[namespace].pods = append(of[namespace].pods, i)
		}
		of[namespace].add(sizes[i])
		all.add(sizes[i])
	}
	most := shares(slices.Collect(maps.Values(of)))
	heap.Init(&most)
	if all.part() > 1 {
		for _, s := range most {
			slices.SortFunc(s.pods, func(a, b int) int {
				switch {
				case holds(a) && !holds(b):
					return -1
				case holds(b) && !holds(a):
					return 1
				}
				return cmp.Or(cmp.Compare(sizes[a].part(), sizes[b].part()), cmp.Compare(a, b))
			})
		}
	}
	for all.part() > 1 && len(most) > 0 {
		s := most[0]
		if len(s.pods) == 0 {
			heap.Pop(&most)
			continue
		}
		i := s.pods[len(s.pods)-1]
		s.pods = s.pods[:len(s.pods)-1]
		before := sizes[i]
		if reduce(i) {
			s.subtract(before)
			s.add(sizes[i])
			all.subtract(before)
			all.add(sizes[i])
			heap.Fix(&most, 0)
		}
	}
	kept := make([]Pod, 0, len(f.Pods))
	for i := range f.Pods {
		if !out[i] {
			kept = append(kept, f.Pods[i])
		}
	}
	f.Pods = kept
	namespaces := slices.SortedFunc(maps.Keys(left), func(a, b string) int { return cmp.Or(cmp.Compare(left[b], left[a]), cmp.Compare(a, b)) })
	const named = 20
	for _, namespace := range namespaces[:min(len(namespaces), named)] {
		notes = append(notes, fmt.Sprintf("pods of namespace %s are left out, or without labels and constraints if they hold a node, the largest first (%d): they are larger than %d KiB, say what cannot be, or its pods take most of what a snapshot can hold",
			namespace, left[namespace], MaxItem>>10))
	}
	if more := len(namespaces) - named; more > 0 {
		notes = append(notes, fmt.Sprintf("so are pods of %d more namespaces", more))
	}
	f.Unread = append(f.Unread, notes...)
	return notes
}
