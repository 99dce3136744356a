package observe

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/leader"
	"github.com/gpuslice/gpuslice/webhook/leader/nodelease"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// lab is a cluster in memory, under the clock of a synctest bubble.
type lab struct {
	t      *testing.T
	client *fake.Clientset
	guards *guardRecord // nil: none is kept
	claims func(namespace, name string) *resourcev1.ResourceClaim
}

// inLab runs f in a bubble with the objects in place.
func inLab(t *testing.T, f func(*lab), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(&lab{t: t, client: fake.NewClientset(append(objects, nightly())...)}) })
}

// nightly is the Job that owns the pods of fixtures.
func nightly() *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "nightly", UID: "job-1"}}
}

// replica is a running controller.
type replica struct {
	registry *prometheus.Registry
	stop     func()
}

// replica starts a controller.
func (l *lab) replica(identity string) *replica {
	l.t.Helper()
	ctx, cancel := context.WithCancel(l.t.Context())
	r := &replica{registry: prometheus.NewRegistry()}
	nodes := coreinformers.NewNodeInformer(l.client, 0, cache.Indexers{})
	election := &leader.Election{Client: l.client, Namespace: api.SystemNamespace, Identity: identity, Log: logr.Discard()}
	options := Options{Client: l.client, Nodes: nodes, Claims: l.claims, Registerer: r.registry, Log: logr.Discard()}
	if l.guards != nil {
		options.Guards = l.guards
	}
	c, err := New(options)
	if err != nil {
		l.t.Fatal(err)
	}
	informed, ended := make(chan struct{}), make(chan error, 1)
	go func() { defer close(informed); nodes.RunWithContext(ctx) }()
	go func() { ended <- election.Run(ctx, func() ([]leader.Runnable, error) { return watched(l.client, c) }) }()
	r.stop = func() {
		cancel()
		<-informed
		if err := <-ended; err != nil {
			l.t.Error(err)
		}
	}
	l.pass(20 * time.Second)
	return r
}

// newWatch is what a leader watches.
func newWatch(client kubernetes.Interface) (Watch, error) {
	agents, err := nodelease.Follow(client, api.SystemNamespace)
	return Watch{Pods: podcache.NewInformer(podcache.Options{Client: client}), Agents: agents}, err
}

// watched is what a leader runs that observes, and nothing else.
func watched(client kubernetes.Interface, c *Controller) ([]leader.Runnable, error) {
	w, err := newWatch(client)
	return []leader.Runnable{
		func(ctx context.Context) error { w.Pods.RunWithContext(ctx); return nil },
		func(ctx context.Context) error { w.Agents.Run(ctx); return nil },
		func(ctx context.Context) error { return c.Run(ctx, w) },
	}, err
}

// pass lets time go by, and everything come to rest.
func (l *lab) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// observed is the observation in the pod's annotation.
func (l *lab) observed() Observation {
	l.t.Helper()
	pod := l.pod()
	text, ok := pod.Annotations[api.AnnotationObserved]
	if !ok {
		l.t.Fatalf("the pod carries no annotation of what is observed: %v", slices.Sorted(maps.Keys(pod.Annotations)))
	}
	o, err := DecodeObservation(text)
	if err != nil {
		l.t.Fatal(err)
	}
	return o
}

func (l *lab) pod() *corev1.Pod {
	l.t.Helper()
	pod, err := l.client.CoreV1().Pods("team-a").Get(l.t.Context(), "train", metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return pod
}

// status writes the status of the pod, as a kubelet does.
func (l *lab) status(s *subject) {
	l.t.Helper()
	pod := l.pod()
	pod.Status = *s.pod.Status.DeepCopy()
	if _, err := l.client.CoreV1().Pods(pod.Namespace).UpdateStatus(l.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	l.pass(5 * time.Second)
}

// label writes the labels of the subject's node.
func (l *lab) label(s *subject) {
	l.t.Helper()
	if _, err := l.client.CoreV1().Nodes().Update(l.t.Context(), s.node, metav1.UpdateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	l.pass(5 * time.Second)
}

// kubelet writes an Event of the guard's liveness probe.
func (l *lab) kubelet(s *subject, at time.Time, message string) {
	l.t.Helper()
	e := event(s.pod, at, message)
	e.Name = "train.1"
	if _, err := l.client.CoreV1().Events(e.Namespace).Create(l.t.Context(), e, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	l.pass(5 * time.Second)
}

// agent writes an Event of a node's agent.
func (l *lab) agent(s *subject, name, node, reason, message string) {
	l.t.Helper()
	e := event(s.pod, time.Now(), message)
	e.Name, e.Reason, e.Message, e.ReportingController, e.InvolvedObject.FieldPath = name, reason, message, "", ""
	e.Source = corev1.EventSource{Component: "gpuslice", Host: node}
	if _, err := l.client.CoreV1().Events(e.Namespace).Create(l.t.Context(), e, metav1.CreateOptions{}); err != nil {
		l.t.Fatal(err)
	}
	l.pass(5 * time.Second)
}

// renew renews the Lease of the subject's node for so long, as its agent does. reasons are why slices are not enforced, by pod UID.
func (l *lab) renew(s *subject, d time.Duration, reasons map[string]string) {
	l.t.Helper()
	leases := l.client.CoordinationV1().Leases(api.SystemNamespace)
	for end := time.Now().Add(d); time.Now().Before(end); l.pass(5 * time.Second) {
		own := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: lease.Name(s.node.Name), Labels: lease.Labels(),
				Annotations: lease.Report{NotEnforced: reasons}.Annotations()},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &s.node.Name, RenewTime: &metav1.MicroTime{Time: time.Now()}},
		}
		_, err := leases.Update(l.t.Context(), own, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = leases.Create(l.t.Context(), own, metav1.CreateOptions{})
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// events returns the Events of gpuslice, as "Kind/name Reason", sorted.
func (l *lab) events() []string {
	l.t.Helper()
	list, err := l.client.CoreV1().Events(metav1.NamespaceAll).List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		if e.Source.Component == "gpuslice" {
			out = append(out, e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name+" "+e.Reason)
		}
	}
	slices.Sort(out)
	return out
}

// patches are how often a pod was patched, and forgets them.
func (l *lab) patches() int {
	n := 0
	for _, a := range l.client.Actions() {
		if a.GetVerb() == "patch" && a.GetResource().Resource == "pods" {
			n++
		}
	}
	l.client.ClearActions()
	return n
}

// metric is one series, -1 where there is none.
func (r *replica) metric(t *testing.T, tier api.Tier, state State) float64 {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, pair := range m.GetLabel() {
				labels = append(labels, pair.GetValue())
			}
			if family.GetName() == "gpuslice_observed_pods" && strings.Join(labels, " ") == string(state)+" "+string(tier) {
				return m.GetGauge().GetValue()
			}
		}
	}
	return -1
}

// gauge is the one series of a metric, -1 where there is none.
func (r *replica) gauge(t *testing.T, name string) float64 {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name && len(family.GetMetric()) == 1 {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}
