package nodepods

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/policies/api"
)

func TestPromisedBy(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*corev1.Pod)
		enforced bool
		failure  string
	}{
		"a promise of the agent's":    {func(*corev1.Pod) {}, true, ""},
		"one of a sidecar's":          {func(p *corev1.Pod) { *p = *promisedPod("train", false) }, false, ""},
		"none":                        {func(p *corev1.Pod) { p.Annotations = nil }, false, ""},
		"of a pod that has ended":     {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false, ""},
		"of another namespace":        {func(p *corev1.Pod) { p.Namespace = "team-b" }, false, `of namespace "team-a"`},
		"one that cannot be read":     {func(p *corev1.Pod) { p.Annotations[api.AnnotationPromise] = "{" }, false, "read promise"},
		"one whose limits are broken": {func(p *corev1.Pod) { replace(p, `\"slice\":8589934592`, `\"slice\":-1`) }, false, "containers[0].slice"},
		"one of a newer contract":     {func(p *corev1.Pod) { replace(p, `"value":"1"`, `"value":"2"`) }, false, "unknown version"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := promisedPod("train", true)
			c.change(pod)
			got, err := promisedBy(slim(pod))
			if (got != nil) != c.enforced || (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
				t.Errorf("got %+v, %v", got, err)
			}
			if want := map[string]string{idOf("train"): "trainer"}; got != nil && !cmp.Equal(want, got.Containers) {
				t.Errorf("containers: %v", got.Containers)
			}
		})
	}
}

func replace(p *corev1.Pod, before, after string) {
	p.Annotations[api.AnnotationPromise] = strings.Replace(p.Annotations[api.AnnotationPromise], before, after, 1)
}

func TestSlim(t *testing.T) {
	pod := promisedPod("train", true)
	pod.Annotations["other"] = strings.Repeat("x", 1<<16)
	pod.Spec.Containers = []corev1.Container{{Name: "trainer", Image: "image"}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", ContainerID: "cri-o://1", Image: "image"}}
	pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debugger", ContainerID: "cri-o://2"}, {Name: "waits"}}
	got := slim(pod)
	if len(got.Annotations) != 2 || got.Spec.NodeName != "" || len(got.Spec.Containers) > 0 {
		t.Errorf("kept %+v", got)
	}
	if want := map[string]string{"1": "init", "2": "debugger", idOf("train"): "trainer"}; !cmp.Equal(want, containersOf(got)) {
		t.Errorf("containers: %v", containersOf(got))
	}
}

// TestListPromised lists from an API server that cannot stream a list: in pages, of
// which only pods with a promise are kept.
func TestListPromised(t *testing.T) {
	const pages = 3
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		want := fmt.Sprintf("limit=%d field=x continue=%s version=", podsInPage, strings.Repeat("c", asked))
		if got := fmt.Sprintf("limit=%s field=%s continue=%s version=%s", q.Get("limit"), q.Get("fieldSelector"),
			q.Get("continue"), q.Get("resourceVersion")); got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
		asked++
		page := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		for i := range podsInPage {
			pod := promisedPod(fmt.Sprintf("pod-%d-%d", asked, i), true)
			pod.Spec.Containers = []corev1.Container{{Name: "trainer", Image: "image"}}
			if i > 0 {
				pod.Annotations = map[string]string{"other": "text"}
				pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
			}
			page.Items = append(page.Items, *pod)
		}
		if asked < pages {
			page.Continue = strings.Repeat("c", asked)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(page); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	got, err := listPromised(t.Context(), client.CoreV1().Pods(""), "x")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range got.Items {
		names = append(names, got.Items[i].Name)
		if len(got.Items[i].Spec.Containers) > 0 {
			t.Errorf("%s is whole", got.Items[i].Name)
		}
	}
	if want := []string{"pod-1-0", "pod-2-0", "pod-3-0"}; !cmp.Equal(want, names) || got.ResourceVersion != "7" {
		t.Errorf("kept %v at version %q", names, got.ResourceVersion)
	}
}

// TestPods shows a store what a Reflector does.
func TestPods(t *testing.T) {
	p := New(fake.NewClientset(), nodeName, slog.New(slog.DiscardHandler))
	has := func(when string, names ...string) {
		t.Helper()
		got := map[string]bool{}
		for _, promised := range p.Promised() {
			got[promised.Name] = true
		}
		want := map[string]bool{}
		for _, name := range names {
			want[name] = true
		}
		if !cmp.Equal(want, got) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	if p.Synced() {
		t.Error("synced before the first list")
	}
	if err := p.Replace([]any{slim(promisedPod("a", true)), slim(promisedPod("bb", true)), slim(promisedPod("ccc", false))},
		"1"); err != nil || !p.Synced() {
		t.Errorf("not synced by a list: %v", err)
	}
	has("a list", "a", "bb")
	_ = p.Add(promisedPod("dddd", true))
	has("a pod more", "a", "bb", "dddd")
	_ = p.Delete(promisedPod("a", true))
	has("a pod less", "bb", "dddd")
	changed := promisedPod("bb", true)
	changed.Annotations = nil
	_ = p.Update(changed)
	has("a promise that was taken off", "dddd")
	_ = p.Replace([]any{slim(promisedPod("a", true))}, "2")
	has("another list", "a")
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare", UID: "7"}}
	_ = p.Add(bare)
	forged := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "forged", UID: "8", Annotations: map[string]string{nothingGiven: ""}},
		Spec: corev1.PodSpec{HostPID: true}}
	_ = p.Update(forged)
	if _, found := p.Bare("8"); found {
		t.Error("a pod is believed that it was given nothing")
	}
	has("a pod that was given nothing", "a")
	if got, found := p.Bare("7"); !found || got.Name != "bare" {
		t.Errorf("it is known as %+v", got)
	}
	_ = p.Delete(bare)
	if _, found := p.Bare("7"); found {
		t.Error("it is known after it ended")
	}
}
