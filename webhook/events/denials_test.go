package events

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

func ownedBy(apiVersion, kind, name, uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team-a", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}}}
}

// podOf is a denied pod of a ReplicaSet.
func podOf(name, uid string) metav1.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: ownedBy("apps/v1", "ReplicaSet", name, uid)}
}

// customPodOf is a denied pod of a custom resource, which nobody reads.
func customPodOf(name, uid string) metav1.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: ownedBy("kubeflow.org/v1", "PyTorchJob", name, uid)}
}

// customResources are the kinds of other APIs that the server knows.
func customResources() []*metav1.APIResourceList {
	return []*metav1.APIResourceList{{GroupVersion: "kubeflow.org/v1", APIResources: []metav1.APIResource{
		{Name: "pytorchjobs", Kind: "PyTorchJob", Namespaced: true}, {Name: "trainingruntimes", Kind: "ClusterTrainingRuntime"}}}}
}

// replicaSet is one that a Deployment controls.
func replicaSet() *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{ObjectMeta: ownedBy("apps/v1", "Deployment", "web", "d-1")}
	rs.Name, rs.UID = "web-abc", "rs-1"
	return rs
}

// deployment is the one of replicaSet.
func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web", UID: "d-1"}}
}

// eventsAfter runs a Denials while deny is called, and returns the Events and their counts.
func eventsAfter(t *testing.T, objects []runtime.Object, deny func(*Denials)) (map[string]int32, prometheus.Gatherer) {
	t.Helper()
	client := fake.NewClientset(objects...)
	client.Resources = customResources()
	registry := prometheus.NewRegistry()
	r, err := NewDenials(client, registry, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	synctest.Wait()
	deny(r)
	time.Sleep(time.Minute) // of the test's own clock: everything queued is written by then
	synctest.Wait()
	out := eventsOf(t, client)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	synctest.Wait()
	return out, registry
}

func eventsOf(t *testing.T, client kubernetes.Interface) map[string]int32 {
	t.Helper()
	list, err := client.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int32{}
	for _, e := range list.Items {
		if e.Reason != ReasonDenied || e.Type != corev1.EventTypeWarning {
			t.Errorf("event %+v", e)
		}
		out[e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name+": "+e.Message] += e.Count
	}
	return out
}

// count returns how many denials had this result.
func count(t *testing.T, registry prometheus.Gatherer, result string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == result {
			return m.GetCounter().GetValue()
		}
	}
	t.Fatalf("no %s in %v", result, families)
	return 0
}

func TestDenials(t *testing.T) {
	t.Run("owners get Events", func(t *testing.T) {
		forged := replicaSet()
		forged.Name, forged.UID, forged.OwnerReferences[0].UID = "web-forged", "rs-9", "d-9"
		for name, c := range map[string]struct {
			pod  metav1.Object
			want map[string]int32
		}{
			"a ReplicaSet and its Deployment": {podOf("web-abc", "rs-1"), map[string]int32{
				"ReplicaSet/web-abc: gpuslice denied a pod: no room": 1, "Deployment/web: gpuslice denied a pod: no room": 1}},
			"a reference to another's ReplicaSet": {podOf("web-abc", "rs-2"), map[string]int32{}},
			"a ReplicaSet that is gone":           {podOf("gone", "rs-3"), map[string]int32{}},
			"a custom resource": {customPodOf("train", "p-1"),
				map[string]int32{"PyTorchJob/train: gpuslice denied a pod: no room": 1}},
			"a custom resource without namespace": {
				&metav1.PartialObjectMetadata{ObjectMeta: ownedBy("kubeflow.org/v1", "ClusterTrainingRuntime", "train", "p-1")}, map[string]int32{},
			},
			"a kind that no API has": {&metav1.PartialObjectMetadata{ObjectMeta: ownedBy("made.up/v1", "Job", "train", "p-1")},
				map[string]int32{}},
			"a node": {&metav1.PartialObjectMetadata{ObjectMeta: ownedBy("v1", "Node", "l4-1", "l4-1")},
				map[string]int32{}},
			"a lease": {
				&metav1.PartialObjectMetadata{ObjectMeta: ownedBy("coordination.k8s.io/v1", "Lease", "l4-1", "l4-1")}, map[string]int32{},
			},
			"a ReplicaSet whose Deployment is made up": {podOf("web-forged", "rs-9"),
				map[string]int32{"ReplicaSet/web-forged: gpuslice denied a pod: no room": 1}},
			"a pod of its own": {&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}},
				map[string]int32{}},
			"an owner without UID": {podOf("web-abc", ""), map[string]int32{}},
			"a name that is none":  {podOf(strings.Repeat("x", 1<<16), "rs-4"), map[string]int32{}},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					got, _ := eventsAfter(t, []runtime.Object{replicaSet(), deployment(), forged}, func(r *Denials) { r.Denied(c.pod, "no room") })
					if diff := cmp.Diff(c.want, got); diff != "" {
						t.Errorf("(-want +got)\n%s", diff)
					}
				})
			})
		}
	})
	t.Run("an owner gets one Event in a while", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			got, registry := eventsAfter(t, nil, func(r *Denials) {
				for range 35 { // one each second
					r.Denied(customPodOf("web-abc", "rs-1"), "no room")
					time.Sleep(time.Second)
				}
			})
			if diff := cmp.Diff(map[string]int32{"PyTorchJob/web-abc: gpuslice denied a pod: no room": 4}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if n := count(t, registry, string(Repeated)); n != 31 {
				t.Errorf("%v are counted as repeated", n)
			}
		})
	})
	t.Run("thousands of denied pods in one namespace cost no other its Events", func(t *testing.T) {
		// A tenant can make such owners up.
		synctest.Test(t, func(t *testing.T) {
			var took time.Duration
			got, registry := eventsAfter(t, nil, func(r *Denials) {
				begin := time.Now()
				for i := range 5000 {
					r.Denied(customPodOf(fmt.Sprintf("made-up-%d", i), fmt.Sprint(i)), "no room")
				}
				took = time.Since(begin)
				neighbour := customPodOf("web-abc", "rs-1")
				neighbour.SetNamespace("team-b")
				r.Denied(neighbour, "no room")
			})
			if took > 0 {
				t.Errorf("callers waited %v", took)
			}
			if len(got) > namespaceBurst+1 || got["PyTorchJob/web-abc: gpuslice denied a pod: no room"] != 1 {
				t.Errorf("%d events, the neighbour's among them: %d", len(got), got["PyTorchJob/web-abc: gpuslice denied a pod: no room"])
			}
			if n := count(t, registry, string(Dropped)); n != 5000-namespaceBurst {
				t.Errorf("%v are counted as dropped", n)
			}
		})
	})
	t.Run("denials in many namespaces are bounded", func(t *testing.T) {
		// Whoever may create namespaces can make them up as well.
		synctest.Test(t, func(t *testing.T) {
			got, _ := eventsAfter(t, nil, func(r *Denials) {
				for i := range 5000 {
					pod := customPodOf("web", fmt.Sprint(i))
					pod.SetNamespace(fmt.Sprintf("n-%d", i))
					r.Denied(pod, "no room")
				}
			})
			if n := got["PyTorchJob/web: gpuslice denied a pod: no room"]; n < queueBurst || n > queueSize+queueBurst+1 {
				t.Errorf("%d events", n)
			}
		})
	})
}

// TestDenialsOfReplicas has two replicas report pods of one Deployment, as its controller tries again with either.
func TestDenialsOfReplicas(t *testing.T) {
	client := fake.NewClientset(replicaSet(), deployment())
	for i, message := range []string{"no room: used 3", "no room: used 4"} {
		for range 2 {
			replica, err := NewDenials(client, prometheus.NewRegistry(), logr.Discard())
			if err != nil {
				t.Fatal(err)
			}
			replica.write(t.Context(), denial{controlled(podOf("web-abc", "rs-1")), message})
		}
		want := map[string]int32{"ReplicaSet/web-abc: gpuslice denied a pod: " + message: int32(2*i + 2),
			"Deployment/web: gpuslice denied a pod: " + message: int32(2*i + 2)}
		if diff := cmp.Diff(want, eventsOf(t, client)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
