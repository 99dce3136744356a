package source

// room is how much of Records each namespace takes.
type room struct {
	series    crowd[string]
	workloads crowd[Key]
}

// crowd is what namespaces have of a room.
type crowd[K comparable] struct {
	most, all int
	of        map[string][]K // by namespace
}

// fit makes room in all for one more of a namespace. Of a server, the namespace that has most gives up one, or this is left out: a tenant
// writes the labels of its own series, and must not take the room of others.
func fit[K comparable, V any](r *Records, c *crowd[K], all map[K]V, namespace string, added K) error {
	if c.of == nil {
		c.of = map[string][]K{}
	}
	if c.all < c.most {
		c.of[namespace], c.all = append(c.of[namespace], added), c.all+1
		return nil
	}
	largest := namespace
	for other, has := range c.of {
		if len(has) > len(c.of[largest]) {
			largest = other
		}
	}
	if !r.server || largest == namespace {
		return ErrTooMuch
	}
	r.LeftOut++
	last := len(c.of[largest]) - 1
	delete(all, c.of[largest][last])
	c.of[largest] = c.of[largest][:last]
	c.of[namespace] = append(c.of[namespace], added)
	return nil
}
