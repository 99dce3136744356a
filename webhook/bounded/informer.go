package bounded

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Kept describes the copies of a Source's objects.
type Kept struct {
	Name string // of the kind: ResourceClaims
	// Of returns the copy of an object, which may be of another type, and its size in bytes. nil: nothing is kept; size
	// 0: it is not counted.
	Of func(runtime.Object) (kept runtime.Object, size int)
	// Gone returns the copy of an object that is deleted. Optional: Of does.
	Gone func(runtime.Object) runtime.Object
	// Least makes the copy of objects that find no room; nil: none. It has a room of its own.
	Least *Kept
	// Bytes bounds all copies; 0: unbounded, since administrators alone write such objects. One namespace keeps no more
	// than the free part.
	Bytes int
	// Full is called when a first object of a namespace finds no room.
	Full func(name, namespace string)
}

// Informer returns the informer of the copies.
func (s Source) Informer(k Kept, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(s.ListerWatcher(k), nil,
		cache.SharedIndexInformerOptions{Indexers: indexers, ObjectDescription: k.Name})
}

// ListerWatcher lists and watches the copies. Bookmarks and errors are as the API server sends them.
func (s Source) ListerWatcher(k Kept) cache.ListerWatcher {
	kept := newKeeper(&k)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.Limit, o.Continue = 0, "" // pages are Each's
			kept.empty()
			out := &list{}
			var err error
			out.ResourceVersion, err = s.Each(ctx, o, func(object runtime.Object) error {
				if e := kept.event(watch.Event{Type: watch.Added, Object: object}); e.Type == watch.Added {
					out.Items = append(out.Items, e.Object)
				}
				return nil
			})
			return out, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			s.narrow(&o)
			events, err := s.watch(ctx, o)
			if err != nil {
				return nil, err
			}
			if o.SendInitialEvents != nil && *o.SendInitialEvents {
				kept.empty()
			}
			return watchKept(events, kept.event), nil
		},
	}, s.client)
}

// keeper keeps objects within bounds.
type keeper struct {
	*Kept
	capacity capacity
	least    *keeper // of objects that find no room; nil: nothing is kept of them
}

// newKeeper returns the keeper for k; nil for nil.
func newKeeper(k *Kept) *keeper {
	if k == nil {
		return nil
	}
	return &keeper{Kept: k, capacity: capacity{most: k.Bytes, namespaces: map[string]*namespaceUse{}}, least: newKeeper(k.Least)}
}

// empty forgets all: a list begins.
func (k *keeper) empty() {
	for ; k != nil; k = k.least {
		k.capacity.empty()
	}
}

// remove releases an object's room.
func (k *keeper) remove(namespace, name string) {
	for ; k != nil; k = k.least {
		k.capacity.remove(namespace, name)
	}
}

// keep returns the copy of an object in place of the former one; nil: nothing. had reports whether it took some room
// before and finds none.
func (k *keeper) keep(object runtime.Object, namespace, name string) (kept runtime.Object, had bool) {
	kept, size := k.Of(object)
	if size == 0 || kept == nil {
		k.remove(namespace, name)
		return kept, false
	}
	ok, had, first := k.capacity.put(namespace, name, costOf(kept, size))
	if ok {
		k.least.remove(namespace, name)
		return kept, false
	}
	if first && k.Full != nil {
		k.Full(k.Name, namespace)
	}
	if k.least == nil {
		return nil, had
	}
	kept, hadLeast := k.least.keep(object, namespace, name)
	return kept, had || hadLeast
}

// event is the shown form of an event. For an object without a copy its version is shown, or its deletion, if there was
// a copy of it.
func (k *keeper) event(e watch.Event) watch.Event {
	if e.Type != watch.Added && e.Type != watch.Modified && e.Type != watch.Deleted {
		return e
	}
	about, err := meta.Accessor(e.Object)
	if err != nil {
		return e // the caller reports it
	}
	name, version := about.GetName(), about.GetResourceVersion()
	namespace := cmp.Or(about.GetNamespace(), name)
	if e.Type == watch.Deleted {
		k.remove(namespace, name)
		if k.Gone != nil {
			e.Object = k.Gone(e.Object)
		} else if object, _ := k.Of(e.Object); object != nil {
			e.Object = object
		}
		return e
	}
	object, had := k.keep(e.Object, namespace, name)
	if object != nil {
		return watch.Event{Type: e.Type, Object: object}
	}
	bare := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: about.GetNamespace(), Name: name, ResourceVersion: version}}
	if had || e.Type == watch.Modified {
		return watch.Event{Type: watch.Deleted, Object: bare}
	}
	return watch.Event{Type: watch.Bookmark, Object: bare}
}

// list is a list of copies.
type list struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject implements runtime.Object.
func (l *list) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for _, o := range l.Items {
		out.Items = append(out.Items, o.DeepCopyObject())
	}
	return &out
}

// keptWatch is a watch of copies.
type keptWatch struct {
	watch.Interface
	events chan watch.Event
	ended  context.CancelFunc
}

func watchKept(from watch.Interface, of func(watch.Event) watch.Event) *keptWatch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &keptWatch{from, make(chan watch.Event), cancel}
	go func() {
		defer close(w.events)
		for e := range from.ResultChan() {
			select {
			case w.events <- of(e):
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}

// ResultChan implements watch.Interface.
func (w *keptWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *keptWatch) Stop() {
	w.ended()
	w.Interface.Stop()
}
