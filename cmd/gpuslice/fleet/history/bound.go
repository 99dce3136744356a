package history

import (
	"cmp"
	"container/heap"
)

// bounds are those of Records.
type bounds struct {
	series    bound[string]
	workloads bound[Key]
}

// bound is one bound, with what namespaces have of it.
type bound[K comparable] struct {
	most, all int
	of        map[string]*part[K] // by namespace
	byMost    parts[K]
}

// part is what one namespace has, and its place among the others.
type part[K comparable] struct {
	namespace string
	has       []K
	at        int
}

// parts are a heap: first the one that has most, of equal ones the first by name.
type parts[K comparable] []*part[K]

func (p parts[K]) Len() int { return len(p) }
func (p parts[K]) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(len(p[j].has), len(p[i].has)), cmp.Compare(p[i].namespace, p[j].namespace)) < 0
}
func (p parts[K]) Swap(i, j int) { p[i], p[j], p[i].at, p[j].at = p[j], p[i], j, i }
func (p *parts[K]) Push(added any) {
	added.(*part[K]).at = len(*p)
	*p = append(*p, added.(*part[K]))
}
func (p *parts[K]) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// admit makes room in all for one more of a namespace. Of a server, the namespace that has most gives up one if it keeps as much as this
// has then, or this is left out: a tenant writes the labels of its own series, and must not take the room of others.
func admit[K comparable, V any](r *Records, c *bound[K], all map[K]V, namespace string, added K) error {
	if c.of == nil {
		c.of = map[string]*part[K]{}
	}
	own := c.of[namespace]
	if own == nil {
		own = &part[K]{namespace: namespace}
	}
	if c.all < c.most {
		c.all++
	} else {
		largest := c.byMost[0]
		if !r.server || len(largest.has) <= len(own.has)+1 {
			return ErrTooMuch
		}
		r.leaveOut(largest.namespace)
		last := len(largest.has) - 1
		delete(all, largest.has[last])
		largest.has = largest.has[:last]
		heap.Fix(&c.byMost, largest.at)
	}
	if own.has = append(own.has, added); len(own.has) == 1 {
		c.of[namespace] = own
		heap.Push(&c.byMost, own)
	}
	heap.Fix(&c.byMost, own.at)
	return nil
}

// maxNamed is how many namespaces LeftOut names.
const maxNamed = 10_000

// leaveOut counts a series of a namespace that is left out.
func (r *Records) leaveOut(namespace string) {
	if _, known := r.LeftOut[namespace]; len(namespace) > maxName || !known && len(r.LeftOut) >= maxNamed {
		namespace = ""
	}
	r.LeftOut[namespace]++
}
