package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpuslice/gpuslice/policies/api"
)

// owned is a fixture whose pod belongs to a Job.
func owned(t *testing.T) *subject {
	s := started(t, "time-slicing")
	s.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "nightly", UID: "job-1", Controller: new(true)}}
	return s
}

func TestController(t *testing.T) {
	t.Run("a pod with enforcement as planned is annotated once, without an Event", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			r := l.replica("a")
			defer r.stop()
			o := l.observed()
			if o.State != Enforced || o.Tier != api.TierGuard || o.Node != "l4-1" {
				t.Errorf("observed %+v", o)
			}
			l.pass(15 * time.Minute)
			if n, events := l.patches(), l.events(); n != 1 || len(events) > 0 {
				t.Errorf("%d patches, events %q", n, events)
			}
			if got := r.metric(t, api.TierGuard, Enforced); got != 1 {
				t.Errorf("the metric is %v", got)
			}
		}, s.pod, s.node)
	})
	t.Run("degraded and restored enforcement is reported to pod and owner", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			r := l.replica("a")
			defer r.stop()
			s.set("nvidia.com/cuda.driver-version.major", "550")
			l.label(s)
			if o := l.observed(); o.State != Degraded || o.Tier != api.TierFramework {
				t.Errorf("observed %+v", o)
			}
			want := []string{"Job/nightly GPUSliceEnforcementDegraded", "Pod/train GPUSliceEnforcementDegraded"}
			if diff := cmp.Diff(want, l.events()); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
			if got := r.metric(t, api.TierFramework, Degraded); got != 1 {
				t.Errorf("the metric is %v", got)
			}
			s.set("nvidia.com/cuda.driver-version.major", "580")
			l.label(s)
			if o := l.observed(); o.State != Enforced {
				t.Errorf("observed %+v", o)
			}
			if got := l.events(); !slices.Contains(got, "Pod/train GPUSliceEnforcementRestored") {
				t.Errorf("events %q", got)
			}
		}, s.pod, s.node)
	})
	t.Run("a restarted guard is reported", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			defer l.replica("a").stop()
			s.guard().RestartCount, s.guard().LastTerminationState = 1, terminated(137, "OOMKilled", "")
			l.status(s)
			if o := l.observed(); o.State != Enforced || o.Guard.Restarts != 1 {
				t.Errorf("observed %+v", o)
			}
			if diff := cmp.Diff([]string{"Job/nightly GPUSliceGuardRestarted", "Pod/train GPUSliceGuardRestarted"}, l.events()); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
		}, s.pod, s.node)
	})
	t.Run("a termination is reported to pod and owner once, without an Event of the kubelet", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			r := l.replica("a")
			const sentence = "gpuslice terminated python (pid 214, 9.1Gi) in trainer: 9.1Gi of 4Gi on gpu0 for 3.2s"
			s.trainer().LastTerminationState = terminated(143, "Error", sentence)
			s.trainer().LastTerminationState.Terminated.FinishedAt = metav1.Now()
			l.status(s)
			want := []string{"Job/nightly GPUSliceTerminated", "Pod/train GPUSliceTerminated"}
			if diff := cmp.Diff(want, l.events()); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
			l.kubelet(s, time.Now(), sentence) // the same, by the other way
			if diff := cmp.Diff(want, l.events()); diff != "" {
				t.Errorf("events after a notice of the same (-want +got)\n%s", diff)
			}
			r.stop()
			r = l.replica("b")
			defer r.stop()
			s.trainer().LastTerminationState.Terminated.Message = "gpuslice terminated python (pid 300, 5Gi) in trainer: 5Gi of 4Gi on gpu0"
			l.status(s)
			want = []string{"Job/nightly GPUSliceTerminated", "Job/nightly GPUSliceTerminated", "Pod/train GPUSliceTerminated", "Pod/train GPUSliceTerminated"}
			if diff := cmp.Diff(want, l.events()); diff != "" {
				t.Errorf("events of another termination under another leader (-want +got)\n%s", diff)
			}
		}, s.pod, s.node)
	})
	t.Run("a tenant who makes terminations up gets few Events, and none on what owns no pods", func(t *testing.T) {
		s := owned(t)
		s.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "l4-1", UID: "l4-1", Controller: new(true)}}
		inLab(t, func(l *lab) {
			defer l.replica("a").stop()
			for i := range 3 * maxTerminations {
				s.trainer().LastTerminationState = terminated(1, "Error", fmt.Sprintf("gpuslice terminated nothing %d", i))
				s.trainer().LastTerminationState.Terminated.FinishedAt = metav1.Now()
				l.status(s)
			}
			got := l.events()
			if len(got) != maxTerminations || got[0] != "Pod/train GPUSliceTerminated" || got[len(got)-1] != got[0] {
				t.Errorf("events %q", got)
			}
		}, s.pod, s.node)
	})
	t.Run("a notice outlives its Event and the replica", func(t *testing.T) {
		// Events expire after an hour, and replicas are replaced.
		s := owned(t)
		inLab(t, func(l *lab) {
			r := l.replica("a")
			l.kubelet(s, noon.Add(time.Minute), notEnforcing)
			if o := l.observed(); o.State != Degraded {
				t.Fatalf("observed %+v", o)
			}
			if err := l.client.CoreV1().Events("team-a").Delete(t.Context(), "train.1", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			r.stop()
			events := l.events()
			l.patches()
			r = l.replica("b")
			defer r.stop()
			if o := l.observed(); o.State != Degraded || l.patches() != 0 {
				t.Errorf("observed %+v", o)
			}
			if diff := cmp.Diff(events, l.events()); diff != "" {
				t.Errorf("events again by the next replica (-want +got)\n%s", diff)
			}
			s.guard().State, s.guard().RestartCount = running(noon.Add(2*time.Minute)), 1
			s.guard().LastTerminationState = terminated(137, "Error", "")
			l.status(s)
			if o := l.observed(); o.State != Enforced || len(o.Notices) > 0 {
				t.Errorf("a guard that started anew is still evaluated by notices of the last one: %+v", o)
			}
		}, s.pod, s.node)
	})
	t.Run("a forged annotation raises nothing", func(t *testing.T) {
		// While the webhook is down, a tenant can write the annotation.
		s := owned(t)
		s.guard().State = waiting("CrashLoopBackOff")
		s.pod.Annotations[api.AnnotationObserved] = `{"state":"enforced","tier":"hardware","containers":[{"name":"trainer","tiers":["hardware"]}]}`
		inLab(t, func(l *lab) {
			defer l.replica("a").stop()
			if o := l.observed(); o.State != Degraded || o.Tier != api.TierFramework {
				t.Errorf("observed %+v", o)
			}
		}, s.pod, s.node)
	})
	t.Run("only pods with a promise of their own are written", func(t *testing.T) {
		for name, edit := range map[string]func(*corev1.Pod){
			"no promise":                      func(p *corev1.Pod) { delete(p.Annotations, api.AnnotationPromise) },
			"a promise that cannot be read":   func(p *corev1.Pod) { p.Annotations[api.AnnotationPromise] = `{"v":99}` },
			"a promise of another namespace":  func(p *corev1.Pod) { p.Namespace = "team-b" },
			"a pod that is being deleted":     func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = new(metav1.NewTime(noon)), []string{"a.b/c"} },
			"a pod that nothing is known of":  func(p *corev1.Pod) { p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending} },
			"an empty pod with our name only": func(p *corev1.Pod) { p.Annotations, p.Status = nil, corev1.PodStatus{} },
		} {
			t.Run(name, func(t *testing.T) {
				s := owned(t)
				edit(s.pod)
				inLab(t, func(l *lab) {
					defer l.replica("a").stop()
					if n, events := l.patches(), l.events(); n > 0 || len(events) > 0 {
						t.Errorf("%d patches, events %q", n, events)
					}
				}, s.pod, s.node)
			})
		}
	})
	t.Run("a deleted pod is no longer counted", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			r := l.replica("a")
			defer r.stop()
			if err := l.client.CoreV1().Pods("team-a").Delete(t.Context(), "train", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			l.pass(5 * time.Second)
			if got := r.metric(t, api.TierGuard, Enforced); got != 0 {
				t.Errorf("the metric is %v", got)
			}
		}, s.pod, s.node)
	})
	t.Run("a failed write is retried with backoff", func(t *testing.T) {
		// A hot loop would take the API server's time from pods.
		for name, react := range map[string]clienttesting.ReactionFunc{
			"the API server denies": func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "train", nil)
			},
			"a webhook puts the old annotation back": func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &corev1.Pod{}, nil
			},
			"something panics": func(clienttesting.Action) (bool, runtime.Object, error) { panic("odd") },
		} {
			t.Run(name, func(t *testing.T) {
				s := owned(t)
				s.guard().State = waiting("CrashLoopBackOff")
				inLab(t, func(l *lab) {
					tries := 0
					l.client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
						tries++
						return react(a)
					})
					defer l.replica("a").stop()
					l.pass(15 * time.Minute)
					if tries < 8 || tries > 15 {
						t.Errorf("%d tries within a quarter of an hour", tries)
					}
					if events := l.events(); len(events) > 0 {
						t.Errorf("events %q of what was never written", events)
					}
				}, s.pod, s.node)
			})
		}
	})
	t.Run("one replica observes, and the next follows", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			first := l.replica("first")
			second := l.replica("second")
			defer second.stop()
			if n := l.patches(); n != 1 {
				t.Errorf("%d patches by two replicas", n)
			}
			if a, b := first.metric(t, api.TierGuard, Enforced), second.metric(t, api.TierGuard, Enforced); a != 1 || b != -1 {
				t.Errorf("the metric is %v in the one that observes and %v in the other", a, b)
			}
			first.stop()
			l.pass(5 * time.Second)
			if a, b := first.metric(t, api.TierGuard, Enforced), second.metric(t, api.TierGuard, Enforced); a != -1 || b != 1 {
				t.Errorf("afterwards the metric is %v and %v", a, b)
			}
			s.guard().State = waiting("CrashLoopBackOff")
			l.status(s)
			if o := l.observed(); o.State != Degraded {
				t.Errorf("observed %+v", o)
			}
		}, s.pod, s.node)
	})
}

func TestSlimPod(t *testing.T) {
	t.Parallel()
	for plan := range plans {
		s := started(t, plan)
		s.pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("x", 1000)}}
		s.pod.Annotations["other"] = "x"
		object, err := slimPod(s.pod)
		if err != nil {
			t.Fatal(err)
		}
		slim := object.(*corev1.Pod)
		if diff := cmp.Diff(s.observe(), Observe(slim, s.node, s.promise, nil)); diff != "" {
			t.Errorf("%s: another observation of what is cached (-want +got)\n%s", plan, diff)
		}
		if slim.ManagedFields != nil || len(slim.Annotations) != 1 || slim.Spec.Affinity != nil || slim.Spec.Containers[0].Env != nil {
			t.Errorf("%s: too much is kept", plan)
		}
		again, err := slimPod(slim)
		if diff := cmp.Diff(object, again); err != nil || diff != "" {
			t.Errorf("%s: not the same when done twice: %v %s", plan, err, diff)
		}
	}
}
