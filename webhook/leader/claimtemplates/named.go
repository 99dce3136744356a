package claimtemplates

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// namedTemplates are the templates that pods name, counted as the watch shows the pods. One pod more costs the same however many
// there are. Pods of all namespaces count, since any may be governed later. Memory: a name and a pointer a pod that names templates,
// and each template's name once a namespace.
type namedTemplates struct {
	wake  func()                                // there may be something to write
	lacks func(namespace, template string) bool // a template that should be there, by its name

	mu         sync.Mutex
	namespaces namingPods
}

func newNamedTemplates(wake func(), lacks func(namespace, template string) bool) *namedTemplates {
	return &namedTemplates{wake: wake, lacks: lacks, namespaces: namingPods{}}
}

// handler returns the handler of the informer of pods.
func (t *namedTemplates) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    t.put,
		UpdateFunc: func(_, object any) { t.put(object, false) },
		DeleteFunc: t.remove,
	}
}

// put takes a pod. Whoever waits for the pods of the first list looks at their names afterwards. For another pod of
// which all templates are there nothing is to be written.
func (t *namedTemplates) put(object any, listed bool) {
	pod, ok := object.(*podcache.Pod)
	if !ok {
		return
	}
	t.mu.Lock()
	changed, first := t.namespaces.put(pod.Namespace(), pod.Name, pod.Templates())
	t.mu.Unlock()
	lacks := func(name string) bool { return t.lacks(pod.Namespace(), name) }
	if !listed && (first || changed && slices.ContainsFunc(pod.Templates().List(), lacks)) {
		t.wake()
	}
}

// remove takes a pod away. The next sync finds templates that no pod names any more: they are kept for a while anyway.
func (t *namedTemplates) remove(object any) {
	if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.namespaces.put(key.Namespace, key.Name, podcache.Templates{})
	}
}

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
	pods      map[string]podcache.Templates // by the pod's name
	templates map[string]*int               // how many of the pods name each
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

// put takes the names of a pod's templates: a pod without any is forgotten. It reports whether the names changed, and
// whether it is the first of its namespace to name a template.
func (n namingPods) put(namespace, pod string, now podcache.Templates) (changed, first bool) {
	in := n[namespace]
	if in == nil {
		in = &namingPodsIn{pods: map[string]podcache.Templates{}, templates: map[string]*int{}}
	}
	before := in.pods[pod]
	if before == now {
		return false, false
	}
	for _, name := range now.List() {
		first = in.count(name) || first
	}
	for _, name := range before.List() {
		if n := in.templates[name]; *n > 1 {
			*n--
		} else {
			delete(in.templates, name)
		}
	}
	if now == (podcache.Templates{}) {
		delete(in.pods, pod)
	} else {
		in.pods[pod] = now
	}
	if n[namespace] = in; len(in.pods) == 0 {
		delete(n, namespace)
	}
	return true, first
}

// NamedBy returns gpuslice's templates that a pod names: of a pod with a slice, until it has terminated. They are no more than a
// pod may have containers, since an author who is not governed can write any number of claims.
func NamedBy(pod *corev1.Pod) podcache.Templates {
	_, sliced := pod.Labels[api.LabelTier]
	if !sliced || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return podcache.Templates{}
	}
	var all []string
	for i := range pod.Spec.ResourceClaims {
		name := pod.Spec.ResourceClaims[i].ResourceClaimTemplateName
		if name != nil && len(all) < policies.MaxContainers && !slices.Contains(all, *name) && claims.NamesSlice(*name) {
			all = append(all, *name)
		}
	}
	return podcache.TemplatesOf(all)
}
