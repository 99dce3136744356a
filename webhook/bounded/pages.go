// Package bounded lists and watches objects in bounded memory, however large their authors made them: lists are read in
// pages of a few MB, and the size of each kept object counts against its namespace's room.
package bounded

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// firstLimit is the first limit of a list that is too large for one page.
const firstLimit = 256

// Kind lists and watches objects, as clients do: client.CoreV1().Pods("").
type Kind[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// Source is where objects come from.
type Source struct {
	client any // shows whether it can watch a list
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	narrow func(*metav1.ListOptions)
}

// From returns the Source of a kind. narrow, which may be nil, selects objects.
func From[L runtime.Object](client any, kind Kind[L], narrow func(*metav1.ListOptions)) Source {
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return kind.List(ctx, o) }
	if narrow == nil {
		narrow = func(*metav1.ListOptions) {}
	}
	return Source{client: client, list: list, watch: kind.Watch, narrow: narrow}
}

// Each calls do with each object, and returns the version of the list. Through a client whose transport is Limit, no more than a page of
// them is in memory. do is not to wait for anything.
func (s Source) Each(ctx context.Context, o metav1.ListOptions, do func(runtime.Object) error) (version string, err error) {
	s.narrow(&o)
	for {
		next, err := s.page(ctx, o, do)
		switch {
		case apierrors.IsRequestEntityTooLargeError(err) && o.Limit != 1:
			if o.Limit = o.Limit / 2; o.Limit == 0 {
				o.Limit = firstLimit
			}
			o.ResourceVersion, o.ResourceVersionMatch = "", "" // or the API server would not heed the limit
		case err != nil:
			return "", err
		case next.Continue == "":
			return next.ResourceVersion, nil
		default:
			o.Continue = next.Continue
			if o.Limit > 0 { // a few large objects slow down no more than their own pages
				o.Limit = min(2*o.Limit, firstLimit)
			}
		}
	}
}

// Page returns a context for a request of one list, which is answered as too large
// (apierrors.IsRequestEntityTooLargeError) if it is no page, and the function that releases its memory.
func Page(ctx context.Context) (_ context.Context, release func()) {
	held := &heldPage{}
	return context.WithValue(ctx, heldKey{}, held), held.release
}

// page calls do with the objects of one page.
func (s Source) page(ctx context.Context, o metav1.ListOptions, do func(runtime.Object) error) (out metav1.ListMeta, err error) {
	ctx, release := Page(ctx)
	defer release()
	list, err := s.list(ctx, o)
	if err != nil {
		return out, err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return out, fmt.Errorf("read list: %w", err)
	}
	return metav1.ListMeta{ResourceVersion: about.GetResourceVersion(), Continue: about.GetContinue()}, meta.EachListItem(list, do)
}
