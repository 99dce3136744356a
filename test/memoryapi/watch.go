package memoryapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher writes changes of the selected objects to one client.
type watcher struct {
	request
	wanted func(*unstructured.Unstructured) bool
	out    *json.Encoder
	flush  func()
}

// watch streams until the client leaves, its time is over, or the server stops. It returns an error before the first byte only.
func (s *Server) watch(w http.ResponseWriter, req *http.Request, r request) error {
	wanted, err := r.wanted(req)
	if err != nil {
		return err
	}
	query := req.URL.Query()
	if s.old.Load() && query.Get("sendInitialEvents") != "" {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", field.ErrorList{
			field.Forbidden(field.NewPath("sendInitialEvents"), "is forbidden for watch unless the WatchList feature gate is enabled"),
		})
	}
	from := query.Get("resourceVersion")
	initial := query.Get("sendInitialEvents") == "true" || from == "" || from == "0"
	version := 0
	if !initial {
		if version, err = strconv.Atoi(from); err != nil {
			return apierrors.NewBadRequest("resourceVersion: " + err.Error())
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out := watcher{r, wanted, json.NewEncoder(w), w.(http.Flusher).Flush}
	out.flush()
	if initial {
		version = out.initial(s.objects, query.Get("sendInitialEvents") == "true")
	}
	var over <-chan time.Time
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		over = time.After(time.Duration(seconds) * time.Second)
	}
	for {
		news, more := s.objects.since(version)
		for _, c := range news {
			out.send(c)
			version = c.version
		}
		out.flush()
		select {
		case <-more:
		case <-over:
			return nil
		case <-req.Context().Done():
			return nil
		}
	}
}

// initial sends the present objects, and on request the bookmark after them. It returns the version of both.
func (w watcher) initial(s *store, bookmark bool) (version int) {
	found, version := s.list(w.GroupResource, w.wanted)
	for _, o := range found {
		w.event(watch.Added, o.Object)
	}
	if bookmark {
		end := &unstructured.Unstructured{}
		end.SetGroupVersionKind(w.kind())
		end.SetResourceVersion(strconv.Itoa(version))
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		w.event(watch.Bookmark, end.Object)
	}
	w.flush()
	return version
}

// send sends a change of an object that the client selected. One that no longer fits its selectors is deleted to it.
func (w watcher) send(c change) {
	if c.GroupResource != w.GroupResource || w.name != "" && w.name != c.name {
		return
	}
	was, is := c.before != nil && w.wanted(c.before), c.after != nil && w.wanted(c.after)
	switch {
	case was && is:
		w.event(watch.Modified, c.after.Object)
	case is:
		w.event(watch.Added, c.after.Object)
	case was:
		last := c.before.DeepCopy()
		last.SetResourceVersion(strconv.Itoa(c.version))
		w.event(watch.Deleted, last.Object)
	}
}

func (w watcher) event(kind watch.EventType, object map[string]any) {
	_ = w.out.Encode(map[string]any{"type": kind, "object": object})
}
