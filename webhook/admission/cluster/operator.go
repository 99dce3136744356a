package cluster

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

// operatorEvery is how often a reader looks whether ClusterPolicies are served, and operatorRetry how soon it reads again after a change
// or a failure. operatorTimeout bounds one read, operatorWatch one watch.
const (
	operatorEvery   = 30 * time.Second
	operatorRetry   = time.Second
	operatorTimeout = 10 * time.Second
	operatorWatch   = 5 * time.Minute
)

// operatorReader reads the GPU Operator's ClusterPolicy, and again when it changes. An informer would log an error every few
// seconds where the kind is not served, as in most clusters.
type operatorReader struct {
	objects dynamic.Interface
	changed func()
	log     logr.Logger
	current atomic.Pointer[pools.Operator]
	read    atomic.Bool
}

// asked reports whether the API server has answered once, if only that the kind is unknown.
func (r *operatorReader) asked() bool { return r.objects == nil || r.read.Load() }

// latest is the ClusterPolicy that was read last; nil: there is none, or it may not be read.
func (r *operatorReader) latest() *pools.Operator { return r.current.Load() }

// run reads until ctx ends. The last result stays while the API server does not answer.
func (r *operatorReader) run(ctx context.Context) {
	if r.objects == nil {
		return
	}
	for {
		wait := operatorRetry
		if version, err := r.refresh(ctx); err != nil {
			r.log.V(1).Info("cannot read the GPU Operator's ClusterPolicy", "reason", err.Error())
		} else if version == "" || r.awaitChange(ctx, version) != nil {
			wait = operatorEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// refresh reads once. The version is that of the list; "": there is none to watch.
func (r *operatorReader) refresh(ctx context.Context) (version string, err error) {
	operator, version, err := listOperator(ctx, r.objects)
	if err != nil {
		return "", err
	}
	if !reflect.DeepEqual(operator, r.latest()) {
		r.current.Store(operator)
		r.changed()
	}
	r.read.Store(true)
	return version, nil
}

// awaitChange returns once something has changed since version, or after some minutes.
func (r *operatorReader) awaitChange(ctx context.Context, version string) error {
	lasting := int64(operatorWatch / time.Second)
	changes, err := r.objects.Resource(pools.ClusterPolicies).
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

// ReadOperator reads the GPU Operator's ClusterPolicy. nil: there is none, the kind is not served or another project's, or it may
// not be read.
func ReadOperator(ctx context.Context, objects dynamic.Interface) (*pools.Operator, error) {
	operator, _, err := listOperator(ctx, objects)
	return operator, err
}

func listOperator(ctx context.Context, objects dynamic.Interface) (_ *pools.Operator, version string, _ error) {
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	list, err := objects.Resource(pools.ClusterPolicies).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("read ClusterPolicies: %w", err)
	case len(list.Items) == 0:
		return nil, list.GetResourceVersion(), nil
	}
	raw, err := json.Marshal(list.Items[0].Object)
	if err != nil {
		return nil, "", fmt.Errorf("read ClusterPolicy: %w", err)
	}
	policy, _ := pools.ReadClusterPolicy(raw) // fields of another type, of a later release, count as not set
	return policy.Operator(), list.GetResourceVersion(), nil
}
