package memoryapi

import (
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// request is the object of a URL: a resource, or one object of it. A subresource is its object.
type request struct {
	key
	version string
}

// read takes /api/v1/... and /apis/GROUP/VERSION/... apart.
func read(path string) (request, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var r request
	switch {
	case len(parts) > 2 && parts[0] == "api":
		r.version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		r.Group, r.version, parts = parts[1], parts[2], parts[3:]
	default:
		return r, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		r.namespace, parts = parts[1], parts[2:]
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.name = parts[1]
	}
	return r, true
}

// kinds are those that Kubernetes' own clients know, by their resources.
var kinds = sync.OnceValue(func() map[schema.GroupVersionResource]schema.GroupVersionKind {
	known := map[schema.GroupVersionResource]schema.GroupVersionKind{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		known[resource] = kind
	}
	return known
})

// kind is that of the request's objects. Clients of a kind that is not Kubernetes' own read any.
func (r request) kind() schema.GroupVersionKind {
	resource := r.WithVersion(r.version)
	if kind, ok := kinds()[resource]; ok {
		return kind
	}
	return resource.GroupVersion().WithKind("Object")
}

// wanted returns which objects of its resource the request selects.
func (r request) wanted(req *http.Request) (func(*unstructured.Unstructured) bool, error) {
	query := req.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(o *unstructured.Unstructured) bool {
		return (r.namespace == "" || o.GetNamespace() == r.namespace) &&
			byLabel.Matches(labels.Set(o.GetLabels())) && byField.Matches(fieldsOf{o})
	}, nil
}

// fieldsOf reads the fields of an object by their paths.
type fieldsOf struct{ *unstructured.Unstructured }

func (f fieldsOf) Has(path string) bool { return f.Get(path) != "" }

func (f fieldsOf) Get(path string) string {
	text, _, _ := unstructured.NestedString(f.Object, strings.Split(path, ".")...)
	return text
}
