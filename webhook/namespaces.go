package webhook

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
)

// Namespaces younger than the cache are read from the API server: Kubernetes creates pods right after their namespace.
const (
	maxYoung  = 16 // such reads at a time
	youngWait = time.Second
)

var errBusy = errors.New("too many namespaces are being read at once")

// namespaces are those in the cache, sorted by name.
func (c *Cluster) namespaces() (all []policies.Namespace) {
	each(c.watched.namespaces, func(ns *corev1.Namespace) {
		all = append(all, policies.Namespace{Name: ns.Name, Labels: ns.Labels})
	})
	slices.SortFunc(all, func(a, b policies.Namespace) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// namespace returns a namespace from the cache, else from the API server within a second.
func (c *Cluster) namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	if ns := c.cachedNamespace(name); ns != nil {
		return ns, nil
	}
	ctx, cancel := context.WithTimeout(ctx, youngWait)
	defer cancel()
	if !c.young.enter(ctx, youngWait) {
		return nil, errBusy
	}
	defer c.young.leave()
	return c.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
}

// cachedNamespace returns a namespace from the cache, or nil.
func (c *Cluster) cachedNamespace(name string) *corev1.Namespace {
	object, _, _ := c.watched.namespaces.GetStore().GetByKey(name)
	ns, _ := object.(*corev1.Namespace)
	return ns
}
