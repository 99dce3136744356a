package rotation

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// load creates pods through every API server, all the time, and counts. Each create is three calls of the webhook, each over a
// connection of its own.
type load struct {
	stop    context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	passed int
	failed map[string]int // by message
}

// pace is the pause of a caller between two pods: what is tested is certificates, not speed.
const pace = 10 * time.Millisecond

func (l *lab) load(t *testing.T) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	out := &load{stop: stop, failed: map[string]int{}}
	t.Cleanup(out.end)
	for _, config := range l.configs {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		await(t, "an API server reaches the webhook", 30*time.Second, func() bool { return create(ctx, client) == nil })
		for range 2 {
			out.running.Go(func() { out.call(ctx, client) })
		}
	}
	return out
}

func create(ctx context.Context, client kubernetes.Interface) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
	_, err := client.CoreV1().Pods(tenant).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func (l *load) call(ctx context.Context, client kubernetes.Interface) {
	pause := time.NewTicker(pace)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		err := create(ctx, client)
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		if err == nil {
			l.passed++
		} else {
			l.failed[err.Error()]++
		}
		l.mu.Unlock()
	}
}

// since returns what was counted since it was asked last.
func (l *load) since() (passed int, failed map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	passed, failed = l.passed, maps.Clone(l.failed)
	l.passed, l.failed = 0, map[string]int{}
	return passed, failed
}

func (l *load) end() {
	l.stop()
	l.running.Wait()
}

// unharmed waits until enough calls were made, and fails the test where one failed since load was asked last.
func (l *load) unharmed(t *testing.T, while string) {
	t.Helper()
	const enough = 50
	passed, failed := l.since()
	await(t, "enough pods are created while: "+while, 60*time.Second, func() bool {
		morePassed, moreFailed := l.since()
		passed += morePassed
		maps.Copy(failed, moreFailed)
		return passed >= enough || len(failed) > 0
	})
	if len(failed) > 0 {
		t.Errorf("%s: %d pods passed, and failed: %v", while, passed, failed)
		return
	}
	t.Logf("%s: %d pods, none failed", while, passed)
}
