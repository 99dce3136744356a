package watcher

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/clustertest"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/operator"
)

// withOperator is a replica beside an API server that answers for ClusterPolicies as answer says.
func withOperator(t *testing.T, answer func() (*unstructured.UnstructuredList, error),
	changes *watch.FakeWatcher, objects ...runtime.Object) *replica {
	t.Helper()
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{pools.ClusterPolicies: "ClusterPolicyList"})
	dynamic.PrependReactor("list", "clusterpolicies", func(clienttesting.Action) (bool, runtime.Object, error) {
		list, err := answer()
		if err != nil {
			return true, nil, err
		}
		return true, list, nil
	})
	dynamic.PrependWatchReactor("clusterpolicies", func(clienttesting.Action) (bool, watch.Interface, error) {
		if changes == nil {
			return true, nil, errors.New("not watched")
		}
		return true, changes, nil
	})
	w, err := New(Options{Client: fake.NewClientset(objects...), Objects: dynamic, Namespace: system,
		Metrics: metrics.New("test"), Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	return &replica{Watcher: w, end: clustertest.Run(t, w.Run)}
}

func clusterPolicy(spec map[string]any) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicyList",
		"metadata": map[string]any{"resourceVersion": "7"}},
		Items: []unstructured.Unstructured{
			{Object: map[string]any{"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy",
				"metadata": map[string]any{"name": "cluster-policy"}, "spec": spec}},
		}}
}

func TestWatcherRuntimes(t *testing.T) {
	nvidia := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Handler: "nvidia"}
	kata := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata"}
	t.Run("runtime classes of NVIDIA's, as they come and go", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil), nvidia, kata)
			r := start(t, client)
			defer r.end()
			if got := runtimesOf(t, r); len(got.Classes) != 1 || got.Classes[0].Name != "gpu" || got.Operator != nil {
				t.Errorf("got %+v", got)
			}
			if err := client.NodeV1().RuntimeClasses().Delete(t.Context(), "gpu", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			clustertest.Settle()
			if got := runtimesOf(t, r); len(got.Classes) != 0 {
				t.Errorf("after it was deleted: %+v", got)
			}
		})
	})
	t.Run("an operator that is installed later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var policy atomic.Pointer[unstructured.UnstructuredList]
			r := withOperator(t, func() (*unstructured.UnstructuredList, error) {
				if list := policy.Load(); list != nil {
					return list, nil
				}
				return nil, apierrors.NewNotFound(pools.ClusterPolicies.GroupResource(), "")
			}, nil, clustertest.Namespace("team-a", nil))
			defer r.end()
			if err := r.Ready(); err != nil {
				t.Fatalf("not ready where the kind is not served: %v", err)
			}
			policy.Store(clusterPolicy(map[string]any{"cdi": map[string]any{"enabled": true, "nriPluginEnabled": true}}))
			time.Sleep(operator.DiscoveryPeriod)
			clustertest.Settle()
			if o := runtimesOf(t, r).Operator; o == nil || !o.NRIPlugin || !o.CDI {
				t.Errorf("got %+v", o)
			}
		})
	})
	for name, err := range map[string]error{
		"it may not be read":    apierrors.NewForbidden(pools.ClusterPolicies.GroupResource(), "", errors.New("no")),
		"another type of field": nil,
	} {
		t.Run("ready: "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := withOperator(t, func() (*unstructured.UnstructuredList, error) {
					return clusterPolicy(map[string]any{"driver": map[string]any{"enabled": "yes"}, "mig": "on", "cdi": map[string]any{"enabled": true}}),
						err
				}, nil, clustertest.Namespace("team-a", nil))
				defer r.end()
				if err := r.Ready(); err != nil {
					t.Error(err)
				}
				if o := runtimesOf(t, r).Operator; (o != nil) != (err == nil) || o != nil && !o.CDI {
					t.Errorf("got %+v", o)
				}
			})
		})
	}
	t.Run("an operator that is configured anew", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var policy atomic.Pointer[unstructured.UnstructuredList]
			policy.Store(clusterPolicy(map[string]any{"cdi": map[string]any{"enabled": false}}))
			changes := watch.NewFake()
			r := withOperator(t, func() (*unstructured.UnstructuredList, error) { return policy.Load(), nil },
				changes, clustertest.Namespace("team-a", nil))
			defer r.end()
			policy.Store(clusterPolicy(map[string]any{"cdi": map[string]any{"enabled": true}}))
			changes.Modify(&policy.Load().Items[0])
			time.Sleep(operator.RetryPeriod)
			clustertest.Settle()
			if o := runtimesOf(t, r).Operator; o == nil || !o.CDI {
				t.Errorf("got %+v", o)
			}
		})
	})
	t.Run("what was read stays while the API server does not answer, and nobody is ready before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var down atomic.Bool
			down.Store(true)
			r := withOperator(t, func() (*unstructured.UnstructuredList, error) {
				if down.Load() {
					return nil, errors.New("connection refused")
				}
				return clusterPolicy(map[string]any{"cdi": map[string]any{"enabled": true}}), nil
			}, nil, clustertest.Namespace("team-a", nil))
			defer r.end()
			if r.Ready() == nil {
				t.Error("ready before the API server answered")
			}
			down.Store(false)
			time.Sleep(operator.RetryPeriod)
			clustertest.Settle()
			down.Store(true)
			time.Sleep(2 * operator.DiscoveryPeriod)
			if o := runtimesOf(t, r).Operator; r.Ready() != nil || o == nil || !o.CDI {
				t.Errorf("ready: %v, operator: %+v", r.Ready(), o)
			}
		})
	})
}

// runtimesOf is what decisions in the namespace team-a rest on.
func runtimesOf(t *testing.T, r *replica) pools.Runtimes {
	t.Helper()
	in, err := r.Input(t.Context(), "team-a")
	if err != nil {
		t.Fatal(err)
	}
	return in.Runtimes
}
