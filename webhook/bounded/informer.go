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

// Kept says what is kept of the objects of a Source.
type Kept struct {
	Name string // of the kind: ResourceClaims
	// Of returns what is kept of an object, which may be of another type, and its size in bytes. Of nil nothing is kept, and what has no
	// size is not counted.
	Of func(runtime.Object) (kept runtime.Object, size int)
	// Least returns what is kept of one that finds no room, and of which as little as of its name remains; nil: nothing.
	Least func(runtime.Object) runtime.Object
	// Bytes is what all may have; 0: as much as there is, since administrators alone write such objects. One namespace keeps no more than
	// what is free.
	Bytes int
	// Full is called when a first object of a namespace finds no room.
	Full func(name, namespace string)
}

// Informer returns the informer of what is kept.
func (s Source) Informer(k Kept, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformerWithOptions(s.ListerWatcher(k), nil, cache.SharedIndexInformerOptions{Indexers: indexers, ObjectDescription: k.Name})
}

// ListerWatcher lists and watches what is kept. Bookmarks and errors are as the API server sends them.
func (s Source) ListerWatcher(k Kept) cache.ListerWatcher {
	kept := &keeper{Kept: k, room: room{most: k.Bytes, namespaces: map[string]*share{}}}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.Limit, o.Continue = 0, "" // pages are Each's
			kept.room.empty()
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
				kept.room.empty()
			}
			return watchKept(events, kept.event), nil
		},
	}, s.client)
}

// keeper keeps objects within bounds.
type keeper struct {
	Kept
	room room
}

// event is what is shown of an event. Of an object of which nothing is kept its version is shown, or its end, if something was kept of it.
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
	object, size := k.Of(e.Object)
	if e.Type == watch.Deleted {
		k.room.remove(namespace, name)
		if object != nil {
			e.Object = object
		}
		return e
	}
	had := false
	if size == 0 {
		k.room.remove(namespace, name)
	} else if object != nil {
		var ok, first bool
		if ok, had, first = k.room.put(namespace, name, costOf(object, size)); !ok {
			if first && k.Full != nil {
				k.Full(k.Name, namespace)
			}
			object = nil
			if k.Least != nil {
				object = k.Least(e.Object)
			}
		}
	}
	if object != nil {
		return watch.Event{Type: e.Type, Object: object}
	}
	bare := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: about.GetNamespace(), Name: name, ResourceVersion: version}}
	if had || e.Type == watch.Modified {
		return watch.Event{Type: watch.Deleted, Object: bare}
	}
	return watch.Event{Type: watch.Bookmark, Object: bare}
}

// list is a list of what is kept.
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

// keptWatch is a watch of what is kept.
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
