// Package operator reads the GPU Operator's ClusterPolicy.
package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/gpuslice/gpuslice/policies/pools"
)

// DiscoveryPeriod is how often a reader looks whether ClusterPolicies are served, and RetryPeriod how soon it reads again after a change
// or a failure. readTimeout bounds one read, watchTimeout one watch.
const (
	DiscoveryPeriod = 30 * time.Second
	RetryPeriod     = time.Second
	readTimeout     = 10 * time.Second
	watchTimeout    = 5 * time.Minute
)

// Reader reads the ClusterPolicy, and again when it changes. An informer would log an error every few
// seconds where the kind is not served, as in most clusters.
type Reader struct {
	Objects dynamic.Interface // nil: nothing is read
	Changed func()            // is called after each change
	Log     logr.Logger

	current atomic.Pointer[pools.Operator]
	read    atomic.Bool
}

// HasSynced reports whether the API server has answered once, if only that the kind is unknown.
func (r *Reader) HasSynced() bool { return r.Objects == nil || r.read.Load() }

// Latest is the ClusterPolicy that was read last; nil: there is none, or it may not be read.
func (r *Reader) Latest() *pools.Operator { return r.current.Load() }

// Run reads until ctx ends. The last result stays while the API server does not answer.
func (r *Reader) Run(ctx context.Context) {
	if r.Objects == nil {
		return
	}
	for {
		wait := RetryPeriod
		if version, err := r.refresh(ctx); err != nil {
			r.Log.V(1).Info("cannot read the GPU Operator's ClusterPolicy", "reason", err.Error())
		} else if version == "" || r.awaitChange(ctx, version) != nil {
			wait = DiscoveryPeriod
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// refresh reads once. The version is that of the list; "": there is none to watch.
func (r *Reader) refresh(ctx context.Context) (version string, err error) {
	read, version, err := list(ctx, r.Objects)
	if err != nil {
		return "", err
	}
	if !reflect.DeepEqual(read, r.Latest()) {
		r.current.Store(read)
		r.Changed()
	}
	r.read.Store(true)
	return version, nil
}

// awaitChange returns once something has changed since version, or after some minutes.
func (r *Reader) awaitChange(ctx context.Context, version string) error {
	lasting := int64(watchTimeout / time.Second)
	changes, err := r.Objects.Resource(pools.ClusterPolicies).
		Watch(ctx, metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &lasting})
	if err != nil {
		return fmt.Errorf("watch ClusterPolicies: %w", err)
	}
	defer changes.Stop()
	select {
	case <-ctx.Done():
	case <-changes.ResultChan():
	}
	return nil
}

// Read reads the GPU Operator's ClusterPolicy. nil: there is none, the kind is not served or another project's, or it may
// not be read.
func Read(ctx context.Context, objects dynamic.Interface) (*pools.Operator, error) {
	read, _, err := list(ctx, objects)
	return read, err
}

func list(ctx context.Context, objects dynamic.Interface) (_ *pools.Operator, version string, _ error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := objects.Resource(pools.ClusterPolicies).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("read ClusterPolicies: %w", err)
	case len(found.Items) == 0:
		return nil, found.GetResourceVersion(), nil
	}
	raw, err := json.Marshal(found.Items[0].Object)
	if err != nil {
		return nil, "", fmt.Errorf("read ClusterPolicy: %w", err)
	}
	policy, _ := pools.ReadClusterPolicy(raw) // fields of another type, of a later release, count as not set
	return policy.Operator(), found.GetResourceVersion(), nil
}
