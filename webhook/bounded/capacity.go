package bounded

import "sync"

// overhead is the cost of an object in a cache beside its content: keys, maps and pointers.
const overhead = 512

// capacity counts the kept bytes. A namespace keeps at most as much as is still free: however many fill theirs, others find
// some.
type capacity struct {
	most int // bytes; 0: any number, since administrators alone write such objects

	mu         sync.Mutex
	used       int
	namespaces map[string]*namespaceUse
}

// namespaceUse is the part of a namespace.
type namespaceUse struct {
	used   int
	own    map[string]cost // by the object's name
	common map[any]int     // how many objects have it
	full   bool            // an object of it found no room
}

// cost is the room of an object, beside the parts that it shares with others.
type cost struct {
	bytes       int
	common      any // nil: nothing
	commonBytes int
}

// Sharer has a part in common with other objects of its namespace, which is kept once.
type Sharer interface {
	// Common is the part, which can be compared, and its size.
	Common() (part any, bytes int)
}

func costOf(kept any, bytes int) cost {
	c := cost{bytes: bytes + overhead}
	if s, ok := kept.(Sharer); ok {
		c.common, c.commonBytes = s.Common()
	}
	return c
}

// empty forgets all: a list begins.
func (a *capacity) empty() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used, a.namespaces = 0, map[string]*namespaceUse{}
}

// put takes room for an object, in place of its former room. ok is false if there is not enough: then it takes none.
// had reports whether it took some before; first, whether it is the first of its namespace to find none.
func (a *capacity) put(namespace, name string, c cost) (ok, had, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.most == 0 {
		return true, false, false
	}
	s := a.namespaces[namespace]
	if s == nil {
		s = &namespaceUse{own: map[string]cost{}, common: map[any]int{}}
		a.namespaces[namespace] = s
	}
	before, usedBefore := s.own[name], s.used
	_, had = s.own[name]
	a.take(s, before, -1)
	a.take(s, c, 1)
	if s.used <= usedBefore && had || s.used+a.used <= a.most {
		s.own[name] = c
		return true, had, false
	}
	a.take(s, c, -1)
	delete(s.own, name)
	first = !s.full
	s.full = true
	return false, had, first
}

// remove releases an object's room.
func (a *capacity) remove(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.namespaces[namespace]
	if s == nil {
		return
	}
	a.take(s, s.own[name], -1)
	if delete(s.own, name); len(s.own) == 0 {
		delete(a.namespaces, namespace)
	}
}

// take has one object more, or one less, take its room.
func (a *capacity) take(s *namespaceUse, c cost, n int) {
	bytes := c.bytes
	if c.common != nil {
		before := s.common[c.common]
		if s.common[c.common] = before + n; before+n == 0 {
			delete(s.common, c.common)
		}
		if min(before, before+n) == 0 {
			bytes += c.commonBytes
		}
	}
	s.used, a.used = s.used+n*bytes, a.used+n*bytes
}
