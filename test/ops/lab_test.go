package ops

import (
	"context"
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

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// Names of the manifests, and of the tenants' namespace.
const (
	system  = api.SystemNamespace
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

// long reports whether the tests are to run at full size.
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

	leaving sync.WaitGroup
	mu      sync.Mutex
	old     []*install.Process // that stop, and have not left the endpoints yet
	stopped []*install.Process // that were asked to
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
	l := &lab{Installation: i, t: t}
	t.Cleanup(func() {
		for _, p := range slices.Concat(l.Replicas, l.stopped) { // nobody is left for whom they would have to drain
			p.Kill()
		}
		l.leaving.Wait()
	})
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

// endpoints makes the replicas the endpoints of the Service, and those that are just leaving.
func (l *lab) endpoints(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var backends []string
	for _, p := range slices.Concat(l.Replicas, l.old) {
		backends = append(backends, p.Reviews)
	}
	return l.Server.SetEndpoints(ctx, system, service, backends...)
}

// settles bounds what takes some tenths of a second.
const settles = 30 * time.Second

// spread is how long a cluster takes to tell the API server that a replica is leaving.
const spread = time.Second

// replace does what a Deployment does that may have one replica more and none less: a successor starts and becomes an
// endpoint, then the old replica is asked to stop, and leaves the endpoints a second later while it still answers. It does
// not wait for that one to end.
func (l *lab) replace(ctx context.Context, replica int, binary string) error {
	old, err := l.Succeed(ctx, replica, binary)
	if err != nil {
		return fmt.Errorf("replace replica %d: %w", replica, err)
	}
	l.mu.Lock()
	l.old, l.stopped = append(l.old, old), append(l.stopped, old)
	l.mu.Unlock()
	l.leaving.Go(old.Stop)
	if err := l.endpoints(ctx); err != nil {
		return err
	}
	pause(ctx, spread)
	l.mu.Lock()
	l.old = slices.DeleteFunc(l.old, func(p *install.Process) bool { return p == old })
	l.mu.Unlock()
	return l.endpoints(ctx)
}

// slice is a pod that requests a slice.
func slice() *corev1.Pod {
	p := plain()
	p.Labels = map[string]string{api.LabelMemory: "1Gi"}
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}
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
