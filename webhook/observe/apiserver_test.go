package observe

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/leader"
)

// site is a real API server with our namespace and rights, and the fixture's pod on its node.
type site struct {
	*cluster.APIServer
	subject *subject
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{cluster.ForTest(t, cluster.Options{}), started(t, "time-slicing")}
	applier, err := install.NewApplier(s.Config)
	must(t, err)
	for _, name := range []string{"10-namespace.yaml", "20-rbac.yaml"} {
		manifest, err := deploy.Files.ReadFile(name)
		must(t, err)
		must(t, applier.Apply(t.Context(), manifest))
	}
	must(t, s.Namespace(t.Context(), "team-a", nil))
	_, err = s.Client.CoreV1().Nodes().Create(t.Context(), s.subject.node, metav1.CreateOptions{})
	must(t, err)
	s.subject.pod.UID = ""
	made, err := s.Client.CoreV1().Pods("team-a").Create(t.Context(), s.subject.pod, metav1.CreateOptions{})
	must(t, err)
	s.subject.pod.UID = made.UID
	s.status(t)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// status writes the fixture's status to the pod, as its kubelet does.
func (s *site) status(t *testing.T) {
	t.Helper()
	pod, err := s.Client.CoreV1().Pods("team-a").Get(t.Context(), "train", metav1.GetOptions{})
	must(t, err)
	pod.Status = *s.subject.pod.Status.DeepCopy()
	_, err = s.Client.CoreV1().Pods("team-a").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
}

// replica starts a controller with a real token of the webhook's ServiceAccount.
func (s *site) replica(t *testing.T, identity string) *replica {
	t.Helper()
	config, err := s.ServiceAccount(t.Context(), api.SystemNamespace, "gpuslice-webhook")
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	r := &replica{registry: prometheus.NewRegistry()}
	nodes := coreinformers.NewNodeInformer(client, 0, cache.Indexers{})
	election := &leader.Election{Client: client, Namespace: api.SystemNamespace, Identity: identity, Log: logr.Discard()}
	c, err := New(Options{Client: client, Nodes: nodes, Registerer: r.registry, Log: logr.Discard()})
	must(t, err)
	election.LeaseDuration, election.RenewDeadline, election.RetryPeriod = 3*time.Second, 2*time.Second, 200*time.Millisecond
	c.timing = timing{delay: 50 * time.Millisecond, backoff: 50 * time.Millisecond, maxBackoff: time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	informed, ended := make(chan struct{}), make(chan error, 1)
	go func() { defer close(informed); nodes.RunWithContext(ctx) }()
	go func() { ended <- election.Run(ctx, c.Run) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		<-informed
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

// await polls until done returns true.
func await(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// awaitState waits until the annotation has the state.
func (s *site) awaitState(t *testing.T, state State) (o Observation) {
	t.Helper()
	await(t, "observe "+string(state), func(ctx context.Context) (bool, error) {
		pod, err := s.Client.CoreV1().Pods("team-a").Get(ctx, "train", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		o, _ = DecodeObservation(pod.Annotations[api.AnnotationObserved])
		return o.State == state, nil
	})
	return o
}

func (s *site) holder(t *testing.T) string {
	t.Helper()
	lease, err := s.Client.CoordinationV1().Leases(api.SystemNamespace).Get(t.Context(), leader.LeaseName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && lease.Spec.HolderIdentity == nil {
		return ""
	}
	must(t, err)
	return *lease.Spec.HolderIdentity
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
		list, err := s.Client.CoreV1().Events("team-a").List(ctx, metav1.ListOptions{FieldSelector: "reason=" + ReasonDegraded + ",involvedObject.name=train"})
		return err == nil && len(list.Items) == 1 && strings.Contains(list.Items[0].Message, notEnforcing), err
	})

	first := s.holder(t)
	replicas[first].stop()
	await(t, "hand over the lease", func(context.Context) (bool, error) { h := s.holder(t); return h != "" && h != first, nil })
	s.subject.guard().State, s.subject.guard().RestartCount = running(time.Now().Add(time.Minute)), 1
	s.status(t)
	s.awaitState(t, Enforced)
}

// TestTenantCanForgeKubeletEvents is why no Event raises a tier: the API server takes any name of a reporting component from
// those whom Kubernetes lets edit a namespace.
func TestTenantCanForgeKubeletEvents(t *testing.T) {
	abuse.Report(t, abuse.Attempt{Threat: "A26", Attack: "forged Events of the kubelet", Outcome: abuse.Contained, Words: "no report raises a tier"})
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
	_, err = s.Client.CoreV1().Events("team-a").Create(t.Context(), event(s.subject.pod, time.Now().Add(-time.Minute), notEnforcing), metav1.CreateOptions{})
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
		return o.State == Degraded && o.Tier == api.TierFramework && strings.Contains(strings.Join(o.Reasons, ""), "an Event reports that it enforces again"), nil
	})
}

// TestServiceAccountRights asks the API server what else the ServiceAccount may do with pods: nothing.
func TestServiceAccountRights(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	config, err := s.ServiceAccount(t.Context(), api.SystemNamespace, "gpuslice-webhook")
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	pods := client.CoreV1().Pods("team-a")
	_, created := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
	_, status := pods.UpdateStatus(t.Context(), s.subject.pod, metav1.UpdateOptions{})
	_, lease := client.CoordinationV1().Leases("kube-system").Get(t.Context(), leader.LeaseName, metav1.GetOptions{})
	for what, err := range map[string]error{
		"create a pod": created, "write its status": status, "read a Lease elsewhere": lease,
		"delete a pod":    pods.Delete(t.Context(), "train", metav1.DeleteOptions{}),
		"delete an event": client.CoreV1().Events("team-a").Delete(t.Context(), "any", metav1.DeleteOptions{}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want forbidden", what, err)
		}
	}
}
