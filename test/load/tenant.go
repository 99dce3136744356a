package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
)

// tenant creates pods in a namespace of its own, each a slice, and lets them live for a while.
type tenant struct {
	namespace string
	limit     int
	client    kubernetes.Interface

	mu     sync.Mutex
	random *rand.Rand
	told   map[string]int // outcomes of creates
}

func newTenant(client kubernetes.Interface, seed uint64, limit int) *tenant {
	return &tenant{
		namespace: fmt.Sprintf("seed-%d", seed), limit: limit, client: client,
		random: rand.New(rand.NewPCG(seed, 5)), told: map[string]int{},
	}
}

func (t *tenant) float() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.random.Float64()
}

func (t *tenant) chance(p float64) bool { return t.float() < p }

func (t *tenant) upTo(d time.Duration) time.Duration { return time.Duration(t.float() * float64(d)) }

func (t *tenant) tell(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told[what]++
}

// slice is a pod that requests one slice.
func slice(name string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelMemory: "1Gi"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "trainer", Image: "example.test/trainer",
			Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}}}}},
	}
	if name == "" {
		pod.GenerateName = "any-"
	}
	return pod
}

// verdict sorts the outcome of a create.
func verdict(err error) string {
	switch {
	case err == nil:
		return "created"
	case apierrors.IsAlreadyExists(err):
		return "name taken"
	case apierrors.IsTooManyRequests(err):
		return "busy"
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: seed-"):
		return "exceeded"
	case apierrors.IsForbidden(err), strings.Contains(err.Error(), "denies.example.com"):
		return "denied by others"
	}
	return "failed"
}

// work creates n pods, so many at a time, until ctx ends.
func (t *tenant) work(ctx context.Context, n, flight int) {
	var workers sync.WaitGroup
	jobs := make(chan int)
	for range flight {
		workers.Go(func() {
			for k := range jobs {
				t.life(ctx, k)
			}
		})
	}
	for k := range n {
		jobs <- k
	}
	close(jobs)
	workers.Wait()
}

// life is one pod's: one in five under a name that others use too, one in ten a dry run, one in ten whose client leaves.
func (t *tenant) life(ctx context.Context, k int) {
	name := fmt.Sprintf("pod-%d", k)
	switch {
	case t.chance(0.2):
		name = fmt.Sprintf("same-%d", int(t.float()*4))
	case t.chance(0.1):
		name = ""
	}
	options := metav1.CreateOptions{}
	if t.chance(0.1) {
		options.DryRun = []string{metav1.DryRunAll}
	}
	asking, leave := context.WithTimeout(ctx, 40*time.Second)
	defer leave()
	if t.chance(0.1) {
		time.AfterFunc(t.upTo(50*time.Millisecond), leave)
	}
	pod, err := t.client.CoreV1().Pods(t.namespace).Create(asking, slice(name), options)
	t.tell(verdict(err))
	if verdict(err) == "failed" {
		pause(ctx, t.upTo(time.Second)) // as clients do, so that an outage is not met by all that there is to do
	}
	if err != nil || len(options.DryRun) > 0 {
		return
	}
	pause(ctx, t.upTo(6*time.Second))
	t.end(context.WithoutCancel(ctx), pod)
}

// end lets a pod succeed, or deletes it, or both; one in twenty stays.
func (t *tenant) end(ctx context.Context, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	pods := t.client.CoreV1().Pods(t.namespace)
	if t.chance(0.3) {
		pod.Status.Phase = corev1.PodSucceeded
		_, _ = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}) // whether it ended is seen in the watch
	}
	if t.chance(0.95) {
		_ = pods.Delete(ctx, pod.Name,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	}
}

// fill creates pods until as many live as the limit allows, and then one more, which is denied. A pod that another webhook or
// quota still denies holds a reservation until that expires.
func (t *tenant) fill(ctx context.Context, seen *census) error {
	pods := t.client.CoreV1().Pods(t.namespace)
	if err := t.client.CoreV1().ResourceQuotas(t.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	for full := false; ctx.Err() == nil; {
		_, err := pods.Create(ctx, slice(""), metav1.CreateOptions{})
		if full && verdict(err) == "exceeded" {
			return nil
		}
		if err != nil {
			pause(ctx, time.Second)
		}
		live, _ := seen.of(t.namespace)
		full = live >= t.limit
	}
	live, _ := seen.of(t.namespace)
	return fmt.Errorf("%s: %d live, the limit is %d, and it could not be filled", t.namespace, live, t.limit)
}

// pause waits, or until ctx ends: it is a part of the load, not a wait for anything.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
