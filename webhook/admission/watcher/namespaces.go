package watcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Namespaces younger than the cache are read from the API server: Kubernetes creates pods right after their namespace.
const (
	maxReads    = 16 // at a time
	readTimeout = time.Second
)

var errBusy = errors.New("too many namespaces are being read at once")

// Namespaces are those of a cluster.
type Namespaces struct {
	client   kubernetes.Interface
	informer cache.SharedIndexInformer
	reads    *semaphore.Weighted
}

// Informer has the namespaces with labels and, of the annotations, the one that names closed device classes.
func (n *Namespaces) Informer() cache.SharedIndexInformer { return n.informer }

// Version changes with every change of a namespace.
func (n *Namespaces) Version() string { return n.informer.LastSyncResourceVersion() }

// All are the namespaces in the cache, sorted by name.
func (n *Namespaces) All() (all []api.Namespace) {
	forEach(n.informer, func(ns *corev1.Namespace) {
		all = append(all, api.Namespace{Name: ns.Name, Labels: ns.Labels})
	})
	slices.SortFunc(all, func(a, b api.Namespace) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Get returns a namespace from the cache, else from the API server within a second.
func (n *Namespaces) Get(ctx context.Context, name string) (api.Namespace, error) {
	if ns := n.lookup(name); ns != nil {
		return api.Namespace{Name: name, Labels: ns.Labels}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if n.reads.Acquire(ctx, 1) != nil {
		return api.Namespace{}, fmt.Errorf("read namespace %s: %w", name, errBusy)
	}
	defer n.reads.Release(1)
	ns, err := n.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return api.Namespace{}, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return api.Namespace{Name: name, Labels: ns.Labels}, nil
}

// UID of a namespace in the cache; "": it is not there.
func (n *Namespaces) UID(name string) string {
	if ns := n.lookup(name); ns != nil {
		return string(ns.UID)
	}
	return ""
}

// VersionOf is the resource version of a namespace in the cache; "": it is not there.
func (n *Namespaces) VersionOf(name string) string {
	if ns := n.lookup(name); ns != nil {
		return ns.ResourceVersion
	}
	return ""
}

// cached is a namespace with the labels that the cache has.
func (n *Namespaces) cached(name string) api.Namespace {
	if ns := n.lookup(name); ns != nil {
		return api.Namespace{Name: name, Labels: ns.Labels}
	}
	return api.Namespace{Name: name}
}

// lookup returns a namespace from the cache, or nil.
func (n *Namespaces) lookup(name string) *corev1.Namespace {
	return cached[*corev1.Namespace](n.informer, name)
}
