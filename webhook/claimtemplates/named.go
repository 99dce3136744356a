package claimtemplates

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// namedTemplates are the templates that pods name, counted as a Reflector shows the pods. One pod more costs the same however many
// there are. Pods of all namespaces count, since any may be governed later. What is kept is bounded by the pods that the API server
// keeps: of each its name, a pointer, and what nobody else names of at most policies.MaxContainers names.
type namedTemplates struct {
	wake  func()                                // there may be something to write
	lacks func(namespace, template string) bool // a template that should be there, as its name says

	mu         sync.Mutex
	namespaces namingPods
	listed     chan struct{} // closed by the first list
	once       sync.Once
}

func newNamedTemplates(wake func(), lacks func(namespace, template string) bool) *namedTemplates {
	return &namedTemplates{wake: wake, lacks: lacks, namespaces: namingPods{}, listed: make(chan struct{})}
}

// Add implements cache.ReflectorStore. A pod of which all templates are there is no reason to look at any.
func (t *namedTemplates) Add(object any) error {
	pod, ok := object.(*namingPod)
	if !ok {
		return nil
	}
	t.mu.Lock()
	changed, first := t.namespaces.put(pod)
	t.mu.Unlock()
	if first || changed && slices.ContainsFunc(pod.names.list(), func(name string) bool { return t.lacks(pod.Namespace, name) }) {
		t.wake()
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (t *namedTemplates) Update(object any) error { return t.Add(object) }

// Delete implements cache.ReflectorStore. What no pod names any more is found by the next sync: it is kept for a while anyway.
func (t *namedTemplates) Delete(object any) error {
	if pod, ok := object.(*namingPod); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.namespaces.put(&namingPod{ObjectMeta: pod.ObjectMeta})
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (t *namedTemplates) Replace(objects []any, _ string) error {
	all := namingPods{}
	for _, object := range objects {
		if pod, ok := object.(*namingPod); ok {
			all.put(pod)
		}
	}
	t.mu.Lock()
	t.namespaces = all
	t.mu.Unlock()
	t.once.Do(func() { close(t.listed) })
	t.wake()
	return nil
}

// Resync implements cache.ReflectorStore.
func (t *namedTemplates) Resync() error { return nil }

// has reports whether a pod of the namespace names the template.
func (t *namedTemplates) has(namespace, template string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	in := t.namespaces[namespace]
	return in != nil && in.templates[template] != nil
}

// of are the templates that pods of these namespaces name, sorted.
func (t *namedTemplates) of(namespaces map[string]bool) map[string][]string {
	out := map[string][]string{}
	t.mu.Lock()
	for namespace := range namespaces {
		if in := t.namespaces[namespace]; in != nil {
			out[namespace] = slices.Collect(maps.Keys(in.templates))
		}
	}
	t.mu.Unlock()
	for _, names := range out {
		slices.Sort(names)
	}
	return out
}

// namingPods are the pods that name templates, by namespace.
type namingPods map[string]*namingPodsIn

type namingPodsIn struct {
	pods      map[string]names // by the pod's name
	templates map[string]*int  // how many of the pods name each
}

// count counts one pod more that names the template, and reports whether it is the first. The key is a copy, and is never assigned
// again: it would keep all that a pod names after that pod has gone.
func (in *namingPodsIn) count(template string) (first bool) {
	if n := in.templates[template]; n != nil {
		*n++
		return false
	}
	in.templates[strings.Clone(template)] = new(1)
	return true
}

// put takes a pod as it is now: one that names nothing is forgotten. It reports whether the pod names something else than it did, and
// whether it is the first of its namespace to name a template.
func (n namingPods) put(pod *namingPod) (changed, first bool) {
	in := n[pod.Namespace]
	if in == nil {
		in = &namingPodsIn{pods: map[string]names{}, templates: map[string]*int{}}
	}
	before := in.pods[pod.Name]
	if before == pod.names {
		return false, false
	}
	for _, name := range pod.names.list() {
		first = in.count(name) || first
	}
	for _, name := range before.list() {
		if n := in.templates[name]; *n > 1 {
			*n--
		} else {
			delete(in.templates, name)
		}
	}
	if pod.names == (names{}) {
		delete(in.pods, pod.Name)
	} else {
		in.pods[pod.Name] = pod.names
	}
	if n[pod.Namespace] = in; len(in.pods) == 0 {
		delete(n, pod.Namespace)
	}
	return true, first
}
