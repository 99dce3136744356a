package observe

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
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
	_, err := install.Manifests(t.Context(), s.Config, "10-namespace.yaml", "20-rbac.yaml")
	must(t, err)
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
	go func() { ended <- election.Run(ctx, func() ([]leader.Runnable, error) { return watched(client, c) }) }()
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
