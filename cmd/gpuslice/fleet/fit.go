package fleet

import (
	"bytes"
	"cmp"
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

// Slim leaves out of a pod with a node what it demanded of one, and reports whether there was anything. Such a pod must stay: a node
// without pods may be divided again.
func (p *Pod) Slim() bool {
	if p.Node == "" || len(p.Labels)+len(p.NodeSelector)+len(p.Tolerations)+len(p.Spread) == 0 && p.Affinity == nil {
		return false
	}
	p.Labels, p.NodeSelector, p.Tolerations, p.Spread, p.Affinity = nil, nil, nil, nil, nil
	return true
}

// Fit slims pods, or leaves them out, until Read accepts the others: the largest of the namespace that takes most. So one tenant's pods
// do not keep a snapshot from being written. It returns how many these are, by namespace.
func (f *Fleet) Fit() map[string]int {
	others := sizeOf(f.Pools)
	others.add(sizeOf(f.Nodes))
	others.add(sizeOf(f.Quotas))
	others.add(sizeOf(f.Unread))
	others.items = 0
	sizes, taken, all := make([]size, len(f.Pods)), map[string]*size{}, others
	byNamespace := map[string][]int{} // indexes of pods, the largest last
	for i := range f.Pods {
		sizes[i] = sizeOf(&f.Pods[i])
		namespace := f.Pods[i].Namespace
		if taken[namespace] == nil {
			taken[namespace] = &size{}
		}
		taken[namespace].add(sizes[i])
		all.add(sizes[i])
		byNamespace[namespace] = append(byNamespace[namespace], i)
	}
	if all.part() <= 1 {
		return nil
	}
	for _, pods := range byNamespace {
		slices.SortStableFunc(pods, func(a, b int) int { return cmp.Compare(sizes[a].part(), sizes[b].part()) })
	}
	out, left := map[int]bool{}, map[string]int{}
	for all.part() > 1 && len(taken) > 0 {
		most := slices.MaxFunc(slices.Sorted(maps.Keys(taken)), func(a, b string) int { return cmp.Compare(taken[a].part(), taken[b].part()) })
		pods := byNamespace[most]
		if len(pods) == 0 { // those that are left are slim
			delete(taken, most)
			continue
		}
		i := pods[len(pods)-1]
		byNamespace[most] = pods[:len(pods)-1]
		taken[most].subtract(sizes[i])
		all.subtract(sizes[i])
		left[most]++
		if !f.Pods[i].Slim() {
			out[i] = true
			continue
		}
		sizes[i] = sizeOf(&f.Pods[i])
		taken[most].add(sizes[i])
		all.add(sizes[i])
	}
	kept := make([]Pod, 0, len(f.Pods)-len(out))
	for i := range f.Pods {
		if !out[i] {
			kept = append(kept, f.Pods[i])
		}
	}
	f.Pods = kept
	return left
}
