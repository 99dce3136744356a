package memoryapi

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// start returns a typed client of a server that the test stops. binary: in the form that Kubernetes' components prefer.
func start(t *testing.T, binary bool) *kubernetes.Clientset {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	config := rest.CopyConfig(s.Config)
	if binary {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	return kubernetes.NewForConfigOrDie(config)
}

func TestObjects(t *testing.T) {
	for name, binary := range map[string]bool{"JSON": false, "binary": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			maps, ctx := start(t, binary).CoreV1().ConfigMaps("a"), t.Context()
			if _, err := maps.Get(ctx, "x", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("get of nothing: %v", err)
			}
			first, err := maps.Create(ctx,
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{})
			if err != nil || first.UID == "" || first.ResourceVersion == "" || first.Namespace != "a" || first.Data["k"] != "1" {
				t.Fatalf("created %+v: %v", first, err)
			}
			if _, err := maps.Create(ctx, first, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
				t.Errorf("created twice: %v", err)
			}
			next := first.DeepCopy()
			next.Data["k"] = "2"
			second, err := maps.Update(ctx, next, metav1.UpdateOptions{})
			if err != nil || second.UID != first.UID || second.ResourceVersion == first.ResourceVersion {
				t.Fatalf("updated %+v: %v", second, err)
			}
			if _, err := maps.Update(ctx, next, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("updated from an old version: %v", err)
			}
			for kind, text := range map[types.PatchType]string{
				types.MergePatchType: `{"data":{"m":"1"}}`,
				types.JSONPatchType:  `[{"op":"add","path":"/data/j","value":"1"}]`,
			} {
				if _, err := maps.Patch(ctx, "x", kind, []byte(text), metav1.PatchOptions{}); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
			got, err := maps.Get(ctx, "x", metav1.GetOptions{})
			if err != nil || len(got.Data) != 3 || got.UID != first.UID || !got.CreationTimestamp.Equal(&first.CreationTimestamp) {
				t.Errorf("got %+v: %v", got, err)
			}
			list, err := maps.List(ctx, metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 || list.ResourceVersion != got.ResourceVersion {
				t.Errorf("listed %+v: %v", list, err)
			}
			other := types.UID("other")
			if err := maps.Delete(ctx, "x", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
				t.Errorf("deleted another one: %v", err)
			}
			if err := maps.Delete(ctx, "x", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWatch(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := start(t, false)
	create := func(name, node string) *corev1.Pod {
		p, err := client.CoreV1().Pods("a").Create(ctx,
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	create("before", "n1")
	elsewhere := create("elsewhere", "n2")
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName=n1" }))
	events := eventsOf(t, factory.Core().V1().Pods().Informer())
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	create("after", "n1")
	await := func(want string) {
		t.Helper()
		select {
		case got := <-events:
			if got != want {
				t.Fatalf("the watch reports %q, want %q", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("the watch never reports %q", want)
		}
	}
	await("add before")
	await("add after")
	elsewhere.Spec.NodeName = "n1"
	elsewhere, err := client.CoreV1().Pods("a").Update(ctx, elsewhere, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await("add elsewhere")
	elsewhere.Spec.NodeName = "n2"
	if _, err := client.CoreV1().Pods("a").Update(ctx, elsewhere, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await("delete elsewhere")
	if err := client.CoreV1().Pods("a").Delete(ctx, "after", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await("delete after")
}

// eventsOf collects what an informer reports.
func eventsOf(t *testing.T, informer cache.SharedIndexInformer) <-chan string {
	t.Helper()
	events := make(chan string, 100)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { events <- "add " + o.(*corev1.Pod).Name },
		UpdateFunc: func(_, o any) { events <- "update " + o.(*corev1.Pod).Name },
		DeleteFunc: func(o any) { events <- "delete " + o.(*corev1.Pod).Name },
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestDiscovery(t *testing.T) {
	client, ctx := start(t, false), t.Context()
	if _, err := client.Discovery().ServerResourcesForGroupVersion("resource.k8s.io/v1"); !apierrors.IsNotFound(err) {
		t.Errorf("a group without objects: %v", err)
	}
	if _, err := client.ResourceV1().DeviceClasses().Create(ctx,
		&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Discovery().ServerResourcesForGroupVersion("resource.k8s.io/v1"); err != nil {
		t.Errorf("a group with one: %v", err)
	}
}
