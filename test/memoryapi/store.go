package memoryapi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// key is where an object stands.
type key struct {
	schema.GroupResource
	namespace, name string
}

// change is a step of the store's history. One of before and after is nil where the object was created or deleted.
type change struct {
	key
	version       int
	before, after *unstructured.Unstructured
}

// store has the objects and all that became of them. Its objects are never changed, only replaced.
type store struct {
	mu      sync.Mutex
	version int
	objects map[key]*unstructured.Unstructured
	history []change
	grown   chan struct{} // closed when the history grows
}

func newStore() *store {
	return &store{version: 1, objects: map[key]*unstructured.Unstructured{}, grown: make(chan struct{})}
}

func (s *store) get(k key) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[k]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(k.GroupResource, k.name)
}

// list returns the objects of a resource in the order of their names, and the version of the store.
func (s *store) list(of schema.GroupResource,
	wanted func(*unstructured.Unstructured) bool) (found []*unstructured.Unstructured, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, o := range s.objects {
		if k.GroupResource == of && wanted(o) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		return slices.Compare([]string{a.GetNamespace(), a.GetName()}, []string{b.GetNamespace(), b.GetName()})
	})
	return found, s.version
}

// has reports whether there are objects of an API group.
func (s *store) has(group string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.objects {
		if k.Group == group {
			return true
		}
	}
	return false
}

// since returns the changes after a version, and a channel that is closed when there are more.
func (s *store) since(version int) ([]change, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, _ := slices.BinarySearchFunc(s.history, version+1, func(c change, v int) int { return c.version - v })
	return s.history[first:], s.grown
}

func (s *store) create(k key, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[k] != nil {
		return nil, apierrors.NewAlreadyExists(k.GroupResource, k.name)
	}
	o.SetUID(cmp.Or(o.GetUID(), uuid.NewUUID()))
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	}
	return s.replace(k, o), nil
}

// update replaces what is there by what next makes of a copy. A resource version in the new object has to be the present one.
func (s *store) update(k key,
	next func(*unstructured.Unstructured) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := s.objects[k]
	if have == nil {
		return nil, apierrors.NewNotFound(k.GroupResource, k.name)
	}
	o, err := next(have.DeepCopy())
	if err != nil {
		return nil, err
	}
	if v := o.GetResourceVersion(); v != "" && v != have.GetResourceVersion() {
		return nil,
			apierrors.NewConflict(k.GroupResource, k.name, fmt.Errorf("the object is of version %s, not of %s", have.GetResourceVersion(), v))
	}
	o.SetUID(have.GetUID())
	o.SetCreationTimestamp(have.GetCreationTimestamp())
	return s.replace(k, o), nil
}

func (s *store) delete(k key, version string, uid types.UID) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := s.objects[k]
	switch {
	case have == nil:
		return nil, apierrors.NewNotFound(k.GroupResource, k.name)
	case version != "" && version != have.GetResourceVersion() || uid != "" && uid != have.GetUID():
		return nil, apierrors.NewConflict(k.GroupResource, k.name, fmt.Errorf("the object is another one"))
	}
	s.replace(k, nil)
	return have, nil
}

// replace writes the next step of the history.
func (s *store) replace(k key, o *unstructured.Unstructured) *unstructured.Unstructured {
	s.version++
	c := change{key: k, version: s.version, before: s.objects[k], after: o}
	if o == nil {
		delete(s.objects, k)
	} else {
		o.SetName(k.name)
		o.SetNamespace(k.namespace)
		o.SetResourceVersion(strconv.Itoa(s.version))
		s.objects[k] = o
	}
	s.history = append(s.history, c)
	close(s.grown)
	s.grown = make(chan struct{})
	return o
}
