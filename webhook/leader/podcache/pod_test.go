package podcache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
)

var at = metav1.NewTime(time.Unix(1_795_000_000, 0))

// running is a pod of which all that is to be kept is set, and much that is not.
func running() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "train", UID: "u1", ResourceVersion: "7",
			CreationTimestamp: at, DeletionTimestamp: &at, GenerateName: "dropped",
			Labels: map[string]string{"team": "a", "dropped": "x"},
			Annotations: map[string]string{
				api.AnnotationPromise: "p", api.AnnotationPlanned: "q", api.AnnotationSummary: "s", "dropped": "x",
				api.AnnotationObserved: `{"state":"enforced","node":"node-1","containers":[]}`,
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Dropped", Name: "d", UID: "u2"},
				{APIVersion: "batch/v1", Kind: "Job", Name: "nightly", UID: "u3", Controller: new(true)}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "dropped"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1", RuntimeClassName: new("nvidia"), ServiceAccountName: "dropped",
			InitContainers: []corev1.Container{
				{Name: "guard", Image: "g", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Args: []string{"dropped"}},
			},
			Containers: []corev1.Container{{Name: "trainer", Image: "t", Command: []string{"dropped"}, Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("2")},
			}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodFailed, Reason: "Evicted", Message: "m", StartTime: &at, HostIP: "dropped",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			},
			InitContainerStatuses: []corev1.ContainerStatus{{
				Name: "guard", Started: new(true), RestartCount: 2, Image: "dropped",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled",
					Message: "w", StartedAt: at, FinishedAt: at, ContainerID: "dropped"}},
			}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "trainer", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}},
			},
		},
	}
}

// kept is what is to be kept of a pod.
func kept(pod *corev1.Pod) *corev1.Pod {
	pod.GenerateName, pod.ManagedFields, pod.OwnerReferences = "", nil, pod.OwnerReferences[1:]
	delete(pod.Labels, "dropped")
	delete(pod.Spec.Containers[0].Resources.Limits, "cpu")
	delete(pod.Annotations, "dropped")
	pod.Spec.ServiceAccountName, pod.Spec.InitContainers[0].Args, pod.Spec.Containers[0].Command = "", nil, nil
	pod.Status.HostIP, pod.Status.Conditions, pod.Status.InitContainerStatuses[0].Image = "", pod.Status.Conditions[:1], ""
	pod.Status.InitContainerStatuses[0].LastTerminationState.Terminated.ContainerID = ""
	return pod
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, observed := range map[string]string{
		"its node": `{"node":"node-1"}`, "its node twice": `{"node":"node-1","notices":[{"text":"\"node\":\"node-1\""}]}"node":"node-1"`,
		"another node": `{"node":"node-10"}`, "no node": `{}`, "nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			pod, want := running(), kept(running())
			pod.Annotations[api.AnnotationObserved], want.Annotations[api.AnnotationObserved] = observed, observed
			before := pod.DeepCopy()
			for range 2 { // informers transform objects again that they had
				if diff := cmp.Diff(want, read(t, pod), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				pod = read(t, pod)
			}
			if diff := cmp.Diff(before.Status, running().Status); diff != "" {
				t.Errorf("the pod was changed: %s", diff)
			}
		})
	}
	t.Run("nothing observed, no node", func(t *testing.T) {
		pod, want := running(), kept(running())
		for _, p := range []*corev1.Pod{pod, want} {
			delete(p.Annotations, api.AnnotationObserved)
			p.Spec.NodeName, p.DeletionTimestamp = "", nil
		}
		if diff := cmp.Diff(want, read(t, pod), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("no promise", func(t *testing.T) {
		pod := running()
		pod.Spec.Containers[0].Resources.Limits = nil
		delete(pod.Annotations, api.AnnotationPromise)
		want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train", UID: "u1", ResourceVersion: "7"}}
		want.Spec.NodeName = "node-1"
		if diff := cmp.Diff(want, read(t, pod)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestDevicesWithoutPromise(t *testing.T) {
	t.Parallel()
	pod := running()
	pod.Annotations = nil
	p, err := Of(pod, "team")
	if err != nil {
		t.Fatal(err)
	}
	if p.Promised() || !p.Holds() || !p.Ended() {
		t.Errorf("promised %t, holds %t, ended %t", p.Promised(), p.Holds(), p.Ended())
	}
	want := kept(pod.DeepCopy())
	if diff := cmp.Diff(want, read(t, pod), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// Its author may write what only gpuslice writes.
	pod.Annotations = map[string]string{api.AnnotationObserved: "x"}
	if diff := cmp.Diff(want, read(t, pod), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("with an annotation of its author's: (-want +got)\n%s", diff)
	}
}

func read(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	p, err := Of(pod, "team")
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Read()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestKeep(t *testing.T) {
	t.Parallel()
	object, size := Options{Label: "team"}.Keep(running())
	if size == 0 {
		t.Error("a pod with a promise has no size")
	}
	if key, err := cache.MetaNamespaceKeyFunc(object); err != nil || key != "team-a/train" {
		t.Errorf("its key in a cache is %q: %v", key, err)
	}
	if p := object.(*Pod); !p.Promised() || !p.Ended() || p.Node() != "node-1" {
		t.Errorf("%+v", p)
	}
}

// TestCommon: what a hundred thousand pods have in common is kept once.
func TestCommon(t *testing.T) {
	t.Parallel()
	first, second := running(), running()
	second.Name, second.UID, second.Spec.NodeName, second.OwnerReferences[1].Name = "other", "u9", "node-2", "weekly"
	second.Annotations[api.AnnotationObserved] = `{"state":"enforced","node":"node-2","containers":[]}`
	a, err := Of(first, "team")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Of(second, "team")
	if err != nil {
		t.Fatal(err)
	}
	if x, y := a.holder, b.holder; x.given != y.given || x.observed != y.observed || x.owner == y.owner {
		t.Error("what two pods have in common is not kept once")
	}
}
