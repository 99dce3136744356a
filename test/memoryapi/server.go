package memoryapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Server is a running API server. Use Start.
type Server struct {
	// Config is how clients reach it. Everybody may do everything.
	Config *rest.Config

	objects *store
	http    *http.Server
	old     atomic.Bool
}

// Start opens a port of this machine and serves.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve from memory: %w", err)
	}
	s := &Server{Config: &rest.Config{Host: "http://" + l.Addr().String()}, objects: newStore()}
	s.http = &http.Server{Handler: s}
	go s.http.Serve(l)
	return s, nil
}

// WithoutWatchLists has the server answer as API servers did before Kubernetes 1.34: lists are not watched.
func (s *Server) WithoutWatchLists() { s.old.Store(true) }

// Stop ends the server and every watch.
func (s *Server) Stop() { _ = s.http.Close() }

// Put creates objects, or replaces those that there are. They say their apiVersion and kind; a new one may say when it was created.
func (s *Server) Put(all ...*unstructured.Unstructured) error {
	for _, o := range all {
		if err := s.PutShared(o.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// PutShared is Put without a copy: many objects may share all but their metadata, and nobody may change them afterwards.
func (s *Server) PutShared(o *unstructured.Unstructured) error {
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	k := key{resource.GroupResource(), o.GetNamespace(), o.GetName()}
	_, err := s.objects.create(k, o)
	if apierrors.IsAlreadyExists(err) {
		_, err = s.objects.update(k, func(*unstructured.Unstructured) (*unstructured.Unstructured, error) { return o, nil })
	}
	return err
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r, ok := read(req.URL.Path)
	if !ok {
		s.discover(w, req.URL.Path)
		return
	}
	if req.Method == http.MethodGet && req.URL.Query().Get("watch") != "" {
		if err := s.watch(w, req, r); err != nil {
			answer(w, nil, err)
		}
		return
	}
	object, err := s.act(req, r)
	answer(w, object, err)
}

// act serves a request, and returns the object or list that answers it.
func (s *Server) act(req *http.Request, r request) (any, error) {
	switch {
	case req.Method == http.MethodGet && r.name == "":
		return s.list(req, r)
	case req.Method == http.MethodGet:
		return object(s.objects.get(r.key))
	case req.Method == http.MethodPost:
		return s.create(req, r)
	case req.Method == http.MethodPut:
		o, err := decode(req)
		if err != nil {
			return nil, err
		}
		return object(s.objects.update(r.key, func(*unstructured.Unstructured) (*unstructured.Unstructured, error) { return o, nil }))
	case req.Method == http.MethodPatch:
		return s.patch(req, r)
	case req.Method == http.MethodDelete && r.name != "":
		return s.delete(req, r)
	}
	return nil, apierrors.NewMethodNotSupported(r.GroupResource, req.Method)
}

// object keeps a nil object from becoming an answer that is not nil.
func object(o *unstructured.Unstructured, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return o.Object, nil
}

func (s *Server) list(req *http.Request, r request) (any, error) {
	wanted, err := r.wanted(req)
	if err != nil {
		return nil, err
	}
	found, version := s.objects.list(r.GroupResource, wanted)
	found, about, err := page(req, found)
	if err != nil {
		return nil, err
	}
	about["resourceVersion"] = strconv.Itoa(version)
	items := make([]any, 0, len(found))
	for _, o := range found {
		items = append(items, o.Object)
	}
	kind := r.kind()
	return map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind + "List",
		"metadata": about, "items": items}, nil
}

// page is the requested part of a list. As an API server does, it heeds no limit where any version will do. A list that
// changes between its pages is not the same throughout.
func page(req *http.Request, all []*unstructured.Unstructured) (part []*unstructured.Unstructured, about map[string]any, err error) {
	query, about := req.URL.Query(), map[string]any{}
	if query.Get("limit") == "" || query.Get("resourceVersion") == "0" {
		return all, about, nil
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		return nil, nil, apierrors.NewBadRequest("limit: " + err.Error())
	}
	after := query.Get("continue")
	first := 0
	if after != "" {
		first = sort.Search(len(all), func(i int) bool { return nameOf(all[i]) > after })
	}
	last := min(first+limit, len(all))
	if last < len(all) {
		about["continue"] = nameOf(all[last-1])
	}
	return all[first:last], about, nil
}

// nameOf sorts as lists are sorted.
func nameOf(o *unstructured.Unstructured) string { return o.GetNamespace() + "\x00" + o.GetName() }

func (s *Server) create(req *http.Request, r request) (any, error) {
	o, err := decode(req)
	if err != nil {
		return nil, err
	}
	if r.name = o.GetName(); r.name == "" {
		r.name = o.GetGenerateName() + utilrand.String(5)
	}
	o.SetCreationTimestamp(metav1.Time{})
	if req.URL.Query().Get("dryRun") != "" {
		o.SetName(r.name)
		return o.Object, nil
	}
	return object(s.objects.create(r.key, o))
}

func (s *Server) patch(req *http.Request, r request) (any, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return object(s.objects.update(r.key, func(have *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		before, err := have.MarshalJSON()
		if err != nil {
			return nil, err
		}
		var after []byte
		switch types.PatchType(kind) {
		case types.JSONPatchType:
			var patch jsonpatch.Patch
			if patch, err = jsonpatch.DecodePatch(body); err == nil {
				after, err = patch.Apply(before)
			}
		case types.MergePatchType:
			after, err = jsonpatch.MergePatch(before, body)
		default:
			return nil, apierrors.NewBadRequest("a patch of type " + kind + " is not supported")
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		next := &unstructured.Unstructured{}
		return next, next.UnmarshalJSON(after)
	}))
}

func (s *Server) delete(req *http.Request, r request) (any, error) {
	var options metav1.DeleteOptions
	if body, err := io.ReadAll(req.Body); err != nil {
		return nil, err
	} else if len(body) > 0 {
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	var version string
	var uid types.UID
	if p := options.Preconditions; p != nil {
		if p.ResourceVersion != nil {
			version = *p.ResourceVersion
		}
		if p.UID != nil {
			uid = *p.UID
		}
	}
	return object(s.objects.delete(r.key, version, uid))
}

// decode reads an object as JSON, or in the binary form that typed clients prefer.
func decode(req *http.Request) (*unstructured.Unstructured, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	if !strings.Contains(req.Header.Get("Content-Type"), "protobuf") {
		if err := o.UnmarshalJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return o, nil
	}
	typed, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if o.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
		return nil, err
	}
	o.SetGroupVersionKind(*kind)
	return o, nil
}

// discover answers clients' requests before they know any resource. An API group is there as soon as it has objects.
func (s *Server) discover(w http.ResponseWriter, path string) {
	if path == "/version" {
		answer(w, map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.0"}, nil)
		return
	}
	version, grouped := strings.CutPrefix(path, "/apis/")
	if group, _, ok := strings.Cut(version, "/"); grouped && ok && s.objects.has(group) {
		answer(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: version, APIResources: []metav1.APIResource{}}, nil)
		return
	}
	answer(w, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "path"}, (&url.URL{Path: path}).String()))
}

// answer writes an object, or an error as the API has it.
func answer(w http.ResponseWriter, object any, err error) {
	code := http.StatusOK
	if err != nil {
		var known apierrors.APIStatus
		if !errors.As(err, &known) {
			known = apierrors.NewInternalError(err)
		}
		status := known.Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		object, code = status, int(status.Code)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}
