package claimtemplates

import (
	"fmt"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/tools/cache"
)

// pause is between two syncs that one namespace causes by templates it lost: a tenant may delete them in a loop.
const pause = 5 * time.Second

// watchTemplates rewrites templates that pods name and that are deleted, or have other content. The arrival of a pod is
// not enough: it may be seen before the end of its template. The caller removes the handler with the returned function.
func (w *Writer) watchTemplates(named *namedTemplates) (remove func(), err error) {
	lost := &turnstile{pass: w.wake, closed: map[string]bool{}}
	look := func(object any) {
		if t, ok := object.(*resourcev1.ResourceClaimTemplate); ok && named.has(t.Namespace, t.Name) &&
			!saysItsName(t, templateNamed(t.Namespace, t.Name)) {
			lost.enter(t.Namespace)
		}
	}
	handler, err := w.options.Templates.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, object any) { look(object) },
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingObjectToName(object); err == nil && named.has(key.Namespace, key.Name) {
				lost.enter(key.Namespace)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch templates of claims: %w", err)
	}
	return func() { _ = w.options.Templates.RemoveEventHandler(handler) }, nil // it fails for none of this informer's
}

// turnstile lets each namespace pass at once, and then again after a pause, however often it came in between.
type turnstile struct {
	pass func()

	mu     sync.Mutex
	closed map[string]bool // by namespace, until its pause is over: whether it came again
}

func (s *turnstile) enter(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, closed := s.closed[namespace]; closed {
		s.closed[namespace] = true
		return
	}
	s.closed[namespace] = false
	s.pass()
	time.AfterFunc(pause, func() { s.open(namespace) })
}

func (s *turnstile) open(namespace string) {
	s.mu.Lock()
	again := s.closed[namespace]
	delete(s.closed, namespace)
	s.mu.Unlock()
	if again {
		s.enter(namespace)
	}
}
