package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// Names of the manifests, and of the tenants' namespace.
const (
	system  = policies.SystemNamespace
	service = "gpuslice-webhook"
	team    = "team-a"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // informers complain while a cluster ends
	code := m.Run()
	printFigures()
	if programs != "" {
		_ = os.RemoveAll(programs)
	}
	os.Exit(code)
}

// programs is the folder of what build made.
var programs string

// long says that the tests are to run at full size.
func long() bool { return cluster.Wanted("long") }

// scaled is what a test does in CI, or at full size.
func scaled[T any](ci, full T) T {
	if long() {
		return full
	}
	return ci
}

// build compiles this tree's webhook once for all tests of the package.
var build = sync.OnceValues(func() (path string, err error) {
	if programs, err = os.MkdirTemp("", "gpuslice-ops-"); err != nil {
		return "", err
	}
	return install.Binary(context.Background(), programs, "cmd/webhook")
})

// lab is gpuslice on an API server, and a namespace with a policy and pools.
type lab struct {
	*install.Installation
	t *testing.T

	mu   sync.Mutex
	away []int // replicas that are not among the endpoints
}

func newLab(t *testing.T, from cluster.Options, o install.Options, binary string) *lab {
	t.Helper()
	server := cluster.ForTest(t, from)
	if binary == "" {
		var err error
		if binary, err = build(); err != nil {
			t.Fatal(err)
		}
	}
	i, err := install.NewWith(t.Context(), server, binary, t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	l := &lab{Installation: i, t: t}
	l.must(server.Namespace(t.Context(), team, nil))
	l.must(l.Policy(t.Context(), "default", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\nquota: {slices: 100000}\n")))
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed")
	l.must(err)
	l.must(l.Nodes(t.Context(), nodes...))
	l.must(l.Settle(t.Context()))
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// endpoints makes the replicas the endpoints of the Service, but those that are away.
func (l *lab) endpoints(ctx context.Context, replica int, away bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = slices.DeleteFunc(l.away, func(k int) bool { return k == replica })
	if away {
		l.away = append(l.away, replica)
	}
	var backends []string
	for k, p := range l.Replicas {
		if !slices.Contains(l.away, k) {
			backends = append(backends, p.Reviews)
		}
	}
	return l.Server.SetEndpoints(ctx, system, service, backends...)
}

// settles bounds what takes some tenths of a second.
const settles = 30 * time.Second

// spread is how long a cluster takes to tell the API server that a replica is leaving.
const spread = time.Second

// replace ends a replica as Kubernetes does, and starts it again from a build: it is asked to stop, leaves the endpoints a
// second later while it still answers, and is back among them once it is ready.
func (l *lab) replace(ctx context.Context, replica int, binary string) error {
	old := l.Replicas[replica]
	stopped := make(chan struct{})
	go func() { defer close(stopped); old.Stop() }()
	pause(ctx, spread)
	if err := l.endpoints(ctx, replica, true); err != nil {
		return err
	}
	select {
	case <-stopped:
	case <-ctx.Done():
		return fmt.Errorf("stop replica %d: %w", replica, ctx.Err())
	}
	if err := errors.Join(l.again(ctx, replica, binary), l.endpoints(ctx, replica, false)); err != nil {
		return fmt.Errorf("start replica %d: %w", replica, err)
	}
	return nil
}

func (l *lab) again(ctx context.Context, replica int, binary string) error {
	if binary == "" {
		return l.Again(ctx, replica)
	}
	return l.AgainFrom(ctx, replica, binary)
}

// slice is a pod that asks for a slice.
func slice() *corev1.Pod {
	p := plain()
	p.Labels = map[string]string{policies.LabelMemory: "1Gi"}
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{policies.ResourceGPU: resource.MustParse("1")}
	return p
}

// plain is a pod that has nothing to do with us, and that every namespace takes.
func plain() *corev1.Pod {
	restricted := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "trainer", Image: "example.test/trainer", SecurityContext: restricted}}}}
}

// dryRun asks what a pod would come out as: both webhooks judge it, and nothing is stored.
func (l *lab) dryRun(ctx context.Context, namespace string, p *corev1.Pod) (*corev1.Pod, error) {
	return l.Server.Client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// pause waits, or until ctx ends: it is a part of what is tried, not a wait for anything.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
