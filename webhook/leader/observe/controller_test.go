package observe

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/webhook/events"
	"github.com/gpuslice/gpuslice/webhook/leader"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// kept is the pod as an informer keeps it.
func (s *subject) kept(t *testing.T) *podcache.Pod {
	kept, err := podcache.Of(s.pod, "")
	must(t, err)
	return kept
}

// cached is the pod as it is read from an informer.
func (s *subject) cached(t *testing.T) *corev1.Pod {
	pod, err := s.kept(t).Read()
	must(t, err)
	return pod
}

// owned is a fixture whose pod belongs to a Job.
func owned(t *testing.T) *subject {
	s := started(t, "time-slicing")
	s.pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "batch/v1", Kind: "Job", Name: "nightly", UID: "job-1", Controller: new(true)},
	}
	return s
}

func TestController(t *testing.T) {
	t.Run("a pod with enforcement as planned is annotated once, without an Event", annotatedOnce)
	t.Run("degraded and restored enforcement is reported to pod and owner", degradedAndRestored)
	t.Run("an agent that comes and goes is reported", agentComesAndGoes)
	t.Run("a restarted guard is reported", guardRestarted)
	t.Run("a notice outlives its Event and the replica", noticeOutlivesEvent)
	t.Run("a forged annotation raises nothing", forgedAnnotation)
	t.Run("only pods with a promise of their own are written", onlyOwnPromises)
	t.Run("a deleted pod is no longer counted", deletedPod)
	t.Run("a failed write is retried with backoff", failedWrite)
	t.Run("one replica observes, and the next follows", nextFollows)
}

func annotatedOnce(t *testing.T) {
	s := owned(t)
	inLab(t, func(l *lab) {
		r := l.replica("a")
		defer r.stop()
		o := l.observed()
		if o.State != Enforced || o.Tier != api.TierGuard || o.Node != "l4-1" {
			t.Errorf("observed %+v", o)
		}
		l.pass(15 * time.Minute)
		if n, seen := l.patches(), l.events(); n != 1 || len(seen) > 0 {
			t.Errorf("%d patches, events %q", n, seen)
		}
		if got := r.metric(t, api.TierGuard, Enforced); got != 1 {
			t.Errorf("the metric is %v", got)
		}
	}, s.pod, s.node)
}

func degradedAndRestored(t *testing.T) {
	s := owned(t)
	inLab(t, func(l *lab) {
		r := l.replica("a")
		defer r.stop()
		s.set("nvidia.com/cuda.driver-version.major", "550")
		l.label(s)
		if o := l.observed(); o.State != Degraded || o.Tier != api.TierFramework {
			t.Errorf("observed %+v", o)
		}
		if got := l.pod().Annotations[api.AnnotationSummary]; got != s.promise.Summary(api.TierFramework) {
			t.Errorf("summary %q", got)
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
		if got := l.pod().Annotations[api.AnnotationSummary]; got == "" || got != s.promise.Summary(api.TierGuard) {
			t.Errorf("summary %q", got)
		}
		if got := l.events(); !slices.Contains(got, "Pod/train GPUSliceEnforcementRestored") {
			t.Errorf("events %q", got)
		}
	}, s.pod, s.node)
}

func agentComesAndGoes(t *testing.T) {
	s := started(t, "agent")
	inLab(t, func(l *lab) {
		r := l.replica("a")
		defer r.stop()
		if o := l.observed(); o.State != Degraded || o.Tier != api.TierNone {
			t.Errorf("without an agent: %+v", o)
		}
		l.renew(s, time.Minute, map[string]string{"another": "it is lost"})
		if o := l.observed(); o.State != Enforced || o.Tier != api.TierGuard {
			t.Errorf("with an agent: %+v", o)
		}
		l.renew(s, 15*time.Second, map[string]string{string(s.pod.UID): "gpu1: it is lost"})
		if o := l.observed(); o.State != Degraded || !strings.Contains(strings.Join(o.Reasons, " "), "it reports: gpu1: it is lost") {
			t.Errorf("once a device is lost: %+v", o)
		}
		l.renew(s, 15*time.Second, nil)
		if o := l.observed(); o.State != Enforced || o.Tier != api.TierGuard {
			t.Errorf("once it is back: %+v", o)
		}
		l.pass(lease.Duration + 5*time.Second)
		if o := l.observed(); o.State != Degraded || !strings.Contains(strings.Join(o.Reasons, " "), "its Lease was not renewed for 30s") {
			t.Errorf("once the agent is away: %+v", o)
		}
		want := []string{"Pod/train GPUSliceEnforcementDegraded", "Pod/train GPUSliceEnforcementRestored"}
		if got := l.events(); !slices.Equal(slices.Compact(got), want) {
			t.Errorf("events %q", got)
		}
	}, s.pod, s.node)
}

func guardRestarted(t *testing.T) {
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
}

func noticeOutlivesEvent(t *testing.T) {
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
		seen := l.events()
		l.patches()
		r = l.replica("b")
		defer r.stop()
		if o := l.observed(); o.State != Degraded || l.patches() != 0 {
			t.Errorf("observed %+v", o)
		}
		if diff := cmp.Diff(seen, l.events()); diff != "" {
			t.Errorf("events again by the next replica (-want +got)\n%s", diff)
		}
		s.guard().State, s.guard().RestartCount = running(noon.Add(2*time.Minute)), 1
		s.guard().LastTerminationState = terminated(137, "Error", "")
		l.status(s)
		if o := l.observed(); o.State != Enforced || len(o.Notices) > 0 {
			t.Errorf("a restarted guard is still evaluated by notices of the last one: %+v", o)
		}
	}, s.pod, s.node)
}

func forgedAnnotation(t *testing.T) {
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
}

func onlyOwnPromises(t *testing.T) {
	for name, edit := range map[string]func(*corev1.Pod){
		"no promise":                     func(p *corev1.Pod) { delete(p.Annotations, api.AnnotationPromise) },
		"a promise that cannot be read":  func(p *corev1.Pod) { p.Annotations[api.AnnotationPromise] = `{"v":99}` },
		"a promise of another namespace": func(p *corev1.Pod) { p.Namespace = "team-b" },
		"a pod that is being deleted": func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = new(metav1.NewTime(noon)), []string{"a.b/c"}
		},
		"a pod that nothing is known of":  func(p *corev1.Pod) { p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending} },
		"an empty pod with our name only": func(p *corev1.Pod) { p.Annotations, p.Status = nil, corev1.PodStatus{} },
	} {
		t.Run(name, func(t *testing.T) {
			s := owned(t)
			edit(s.pod)
			inLab(t, func(l *lab) {
				defer l.replica("a").stop()
				if n, seen := l.patches(), l.events(); n > 0 || len(seen) > 0 {
					t.Errorf("%d patches, events %q", n, seen)
				}
			}, s.pod, s.node)
		})
	}
}

func deletedPod(t *testing.T) {
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
}

func failedWrite(t *testing.T) {
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
				if seen := l.events(); len(seen) > 0 {
					t.Errorf("events %q of what was never written", seen)
				}
			}, s.pod, s.node)
		})
	}
}

func nextFollows(t *testing.T) {
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
}

// TestTwoLeaders has two replicas observe the same at once, as while one that lost its lease has not ended yet.
func TestTwoLeaders(t *testing.T) {
	s := owned(t)
	s.pod.ResourceVersion = "7"
	s.set("nvidia.com/cuda.driver-version.major", "550")
	inLab(t, func(l *lab) {
		stored := "7"
		l.client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			var patch corev1.Pod
			if err := json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &patch); err != nil || patch.ResourceVersion != stored {
				return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "train", err)
			}
			stored = "8"
			return false, nil, nil
		})
		ctx, cancel := context.WithCancel(l.t.Context())
		for range 2 {
			nodes := coreinformers.NewNodeInformer(l.client, 0, cache.Indexers{})
			c, err := New(Options{Client: l.client, Nodes: nodes, Registerer: prometheus.NewRegistry(), Log: logr.Discard()})
			if err != nil {
				t.Fatal(err)
			}
			watch, err := newWatch(l.client)
			if err != nil {
				t.Fatal(err)
			}
			leading, err := newSession(c, watch)
			if err != nil {
				t.Fatal(err)
			}
			defer leading.queue.ShutDown()
			leading.writer = eventWriter{events.NewRecorder(ctx, l.client), events.NewOwners(l.client)}
			if err := errors.Join(nodes.GetStore().Add(s.node), leading.Pods.GetStore().Add(s.kept(t))); err != nil {
				t.Fatal(err)
			}
			if err := leading.reconcile(ctx, "team-a/train"); err != nil {
				t.Error(err)
			}
		}
		l.pass(time.Minute)
		want := []string{"Job/nightly GPUSliceEnforcementDegraded", "Pod/train GPUSliceEnforcementDegraded"}
		if diff := cmp.Diff(want, l.events()); diff != "" {
			t.Errorf("events (-want +got)\n%s", diff)
		}
		cancel()
	}, s.pod, s.node)
}

// TestCachedPod: what is kept of a pod is enough to observe it.
func TestCachedPod(t *testing.T) {
	t.Parallel()
	for plan := range plans {
		s := started(t, plan)
		if diff := cmp.Diff(s.observe(), Observe(s.cached(t), s.place(), s.promise, nil)); diff != "" {
			t.Errorf("%s: another observation of what is cached (-want +got)\n%s", plan, diff)
		}
	}
}

func TestControllerOnAPIServer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	replicas := map[string]*replica{"one": s.replica(t, "one"), "two": s.replica(t, "two")}
	if o := s.awaitState(t, Enforced); o.Tier != api.TierGuard {
		t.Errorf("observed %+v", o)
	}
	e := event(s.subject.pod, time.Now(), notEnforcing)
	s.subject.guard().State = running(time.Now().Add(-time.Hour))
	s.status(t)
	_, err := s.Client.CoreV1().Events("team-a").Create(t.Context(), e, metav1.CreateOptions{})
	must(t, err)
	if o := s.awaitState(t, Degraded); o.Tier != api.TierFramework {
		t.Errorf("observed %+v", o)
	}
	await(t, "write an Event on the owner", func(ctx context.Context) (bool, error) {
		list, err := s.Client.CoreV1().Events("team-a").List(ctx,
			metav1.ListOptions{FieldSelector: "reason=" + ReasonDegraded + ",involvedObject.name=train"})
		return err == nil && len(list.Items) == 1 && strings.Contains(list.Items[0].Message, notEnforcing), err
	})

	first := s.holder(t)
	replicas[first].stop()
	await(t, "hand over the lease", func(context.Context) (bool, error) { h := s.holder(t); return h != "" && h != first, nil })
	s.subject.guard().State, s.subject.guard().RestartCount = running(time.Now().Add(time.Minute)), 1
	s.status(t)
	s.awaitState(t, Enforced)
}

// TestForgedEventsOnAPIServer is why no Event raises a tier: the API server takes any name of a reporting component from
// those whom Kubernetes lets edit a namespace.
func TestForgedEventsOnAPIServer(t *testing.T) {
	abuse.Report(t,
		abuse.Attempt{Threat: "A26", Attack: "forged Events of the kubelet", Outcome: abuse.Contained, Words: "no report raises a tier"})
	t.Parallel()
	s := newSite(t)
	// The part of the role "edit" that comes with Kubernetes: a controller that does not run here puts it into "edit".
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-edit"}
	_, err := s.Client.RbacV1().RoleBindings("team-a").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "jane"}, RoleRef: role,
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}},
	}, metav1.CreateOptions{})
	must(t, err)
	jane, err := kubernetes.NewForConfig(s.As("jane"))
	must(t, err)
	s.subject.guard().State = running(time.Now().Add(-time.Hour))
	s.status(t)
	_, err = s.Client.CoreV1().Events("team-a").Create(t.Context(),
		event(s.subject.pod, time.Now().Add(-time.Minute), notEnforcing), metav1.CreateOptions{})
	must(t, err)
	s.replica(t, "one")
	s.awaitState(t, Degraded)

	await(t, "forge an event", func(ctx context.Context) (bool, error) {
		forged := event(s.subject.pod, time.Now(), "gpuslice enforces this pod's slice again on GPU-1")
		_, err := jane.CoreV1().Events("team-a").Create(ctx, forged, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil // the rights of a new binding take a moment
		}
		return true, err
	})
	patch := []byte(`{"metadata":{"annotations":{"` + api.AnnotationObserved + `":"{\"state\":\"holds\",\"tier\":\"guard\"}"}}}`)
	_, err = jane.CoreV1().Pods("team-a").Patch(t.Context(), "train", types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err) // no webhook restores it here
	await(t, "see the forged event and the forged annotation", func(ctx context.Context) (bool, error) {
		pod, err := s.Client.CoreV1().Pods("team-a").Get(ctx, "train", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		o, _ := DecodeObservation(pod.Annotations[api.AnnotationObserved])
		return o.State == Degraded && o.Tier == api.TierFramework &&
			strings.Contains(strings.Join(o.Reasons, ""), "reports that it enforces again"), nil
	})
}

// TestServiceAccountRightsOnAPIServer asks the API server what else the ServiceAccount may do with pods: nothing.
func TestServiceAccountRightsOnAPIServer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	config, err := s.ServiceAccount(t.Context(), api.SystemNamespace, "gpuslice-webhook")
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	pods := client.CoreV1().Pods("team-a")
	_, created := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
	_, status := pods.UpdateStatus(t.Context(), s.subject.pod, metav1.UpdateOptions{})
	_, held := client.CoordinationV1().Leases("kube-system").Get(t.Context(), leader.LeaseName, metav1.GetOptions{})
	for what, err := range map[string]error{
		"create a pod": created, "write its status": status, "read a Lease elsewhere": held,
		"delete a pod":    pods.Delete(t.Context(), "train", metav1.DeleteOptions{}),
		"delete an event": client.CoreV1().Events("team-a").Delete(t.Context(), "any", metav1.DeleteOptions{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want forbidden", what, err)
		}
	}
}
