package e2e

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
)

// within bounds each wait: three periods of the liveness probe, and what a busy machine adds.
const within = 3 * time.Minute

// stage is a test's own namespace with its own GPU.
type stage struct {
	*testing.T
	node      *install.OnNode
	namespace string
}

// newStage makes a namespace that the policy of that name governs ("" is the default), with further labels in the form
// NAME=VALUE, and the GPU that its pods see. Pods and namespace go when the test ends; of a failed one all that can be
// known is logged.
func newStage(t *testing.T, policy string, gpu fakegpu.Config, labels ...string) *stage {
	t.Helper()
	s := &stage{T: t, node: onNode(t), namespace: namespaceOf(t.Name())}
	all := map[string]string{"policy": policy}
	for _, l := range labels {
		name, value, _ := strings.Cut(l, "=")
		all[name] = value
	}
	if err := s.node.Namespace(t.Context(), s.namespace, all); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	s.gpu(gpu)
	return s
}

// namespaceOf is a name that is short enough, valid and the test's own.
func namespaceOf(test string) string {
	h := fnv.New32a()
	h.Write([]byte(test))
	words := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, strings.TrimPrefix(test, "Test"))
	return strings.Trim(words[:min(len(words), 40)], "-") + fmt.Sprintf("-%08x", h.Sum32())
}

// gpu changes the GPU that the namespace's pods see.
func (s *stage) gpu(c fakegpu.Config) {
	s.Helper()
	if err := s.node.GPU(s.namespace, c); err != nil {
		s.Fatal(err)
	}
}

// create creates a pod.
func (s *stage) create(p *corev1.Pod) *corev1.Pod {
	s.Helper()
	created, err := s.node.Client.CoreV1().Pods(s.namespace).Create(s.Context(), p, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return created
}

// get returns a pod as it is.
func (s *stage) get(name string) *corev1.Pod {
	s.Helper()
	p, err := s.node.Client.CoreV1().Pods(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// end takes everything away, after telling of it where the test failed.
func (s *stage) end() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if s.Failed() {
		s.tell(ctx)
	}
	none := int64(0)
	now := metav1.DeleteOptions{GracePeriodSeconds: &none}
	if err := s.node.Client.CoreV1().Pods(s.namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		s.Error(err)
	}
	if err := s.node.Client.CoreV1().Namespaces().Delete(ctx, s.namespace, metav1.DeleteOptions{}); err != nil {
		s.Error(err)
	}
}

// tell logs the pods, their events and what their containers printed.
func (s *stage) tell(ctx context.Context) {
	for _, args := range [][]string{{"describe", "pods"}, {"get", "events", "--sort-by=.lastTimestamp"}} {
		out, err := s.node.Kubectl(ctx, append(args, "--namespace="+s.namespace)...)
		s.Logf("%s (%v):\n%s", strings.Join(args, " "), err, out)
	}
	pods, err := s.node.Client.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		s.Log(err)
		return
	}
	for _, p := range pods.Items {
		for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
			out, err := s.node.Kubectl(ctx, "logs", p.Name, "--container="+c.Name, "--namespace="+s.namespace, "--tail=60")
			s.Logf("log of %s in %s (%v):\n%s", c.Name, p.Name, err, out)
		}
	}
}
