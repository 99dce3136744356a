package ops

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// exempt is a namespace that our configurations leave out: what happens there is what would happen without us.
const exempt = "gpu-operator"

// soon is how long a pod that requests a slice may wait for its denial while nothing of ours runs.
const soon = time.Second

// most is what we may add to the create of a pod without GPUs, up or down.
const most = 5 * time.Millisecond

func TestOutage(t *testing.T) {
	t.Run("with all of gpuslice down only slices wait", func(t *testing.T) {
		l := newLab(t, cluster.Options{ControllerManager: true}, install.Options{Replicas: 3}, "")
		l.must(l.Server.Namespace(t.Context(), exempt, nil))
		up := l.added(t, "up")
		for name, fail := range map[string]func(){
			"killed, and still among the endpoints": func() {
				for _, p := range l.Replicas {
					p.Kill()
				}
			},
			"killed, and gone from the endpoints": func() {
				for _, p := range l.Replicas {
					p.Kill()
				}
				l.must(l.Server.SetEndpoints(t.Context(), system, service))
			},
		} {
			t.Run(name, func(t *testing.T) {
				fail()
				l.onlySlicesWait(t, name, up)
				for k := range l.Replicas {
					l.must(l.Again(t.Context(), k))
				}
				l.must(l.endpoints(t.Context()))
				eventually(t, settles, "slices are given again", func() string {
					if err := l.judged(t.Context()); err != nil {
						return err.Error()
					}
					return ""
				})
			})
		}
		if long() {
			l.hung(t)
		}
	})
}

func (l *lab) onlySlicesWait(t *testing.T, how string, up time.Duration) {
	t.Helper()
	var took time.Duration
	eventually(t, settles, "the API server knows of it", func() string {
		begin := time.Now()
		_, err := l.dryRun(t.Context(), team, slice())
		took = time.Since(begin)
		if err == nil || took > soon {
			return fmt.Sprintf("a slice came after %s: %v", took, err)
		}
		if !strings.Contains(err.Error(), `failed calling webhook "pods.gpuslice.dev"`) {
			t.Fatalf("the denial does not say who is down: %v", err)
		}
		return ""
	})
	down := l.added(t, "down")
	t.Logf("a slice is denied after %s; a pod without GPUs takes %s more than where we are not asked, %s while we are up",
		brief(took), brief(down), brief(up))
	figure("everything down", how+": denial after, added to others", "%s, %s", brief(took), brief(down))
	for _, namespace := range []string{metav1.NamespaceSystem, system, exempt} {
		if _, err := l.dryRun(t.Context(), namespace, slice()); err != nil {
			t.Errorf("in %s: %v", namespace, err)
		}
	}
	for _, namespace := range []string{metav1.NamespaceSystem, team} {
		l.daemons(t, namespace)
	}
}

// added is what the create of a pod without GPUs takes longer in the team's namespace than in one that we leave out, by the
// median. Any that fails, fails the test.
func (l *lab) added(t *testing.T, when string) time.Duration {
	t.Helper()
	times := map[string][]time.Duration{}
	for range scaled(300, 3000) {
		for _, namespace := range []string{exempt, team} { // in turns: what else the machine does hits both
			begin := time.Now()
			if _, err := l.dryRun(t.Context(), namespace, plain()); err != nil {
				t.Fatalf("a pod without GPUs, in %s: %v", namespace, err)
			}
			times[namespace] = append(times[namespace], time.Since(begin))
		}
	}
	added := quantile(times[team], 50) - quantile(times[exempt], 50)
	if added > most {
		t.Errorf("%s, a pod without GPUs takes %s longer", when, added)
	}
	return added
}

// daemons makes a DaemonSet, whose pods have to come.
func (l *lab) daemons(t *testing.T, namespace string) {
	t.Helper()
	labels := map[string]string{"app": "daemon"}
	sets := l.Server.Client.AppsV1().DaemonSets(namespace)
	p := plain()
	set, err := sets.Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{GenerateName: "daemon-"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: p.Spec},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("a DaemonSet in %s: %v", namespace, err)
		return
	}
	eventually(t, settles, "the DaemonSet in "+namespace+" has its pods", func() string {
		now, err := sets.Get(t.Context(), set.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if s := now.Status; s.DesiredNumberScheduled == 0 || s.CurrentNumberScheduled != s.DesiredNumberScheduled {
			return fmt.Sprintf("%d of %d", s.CurrentNumberScheduled, s.DesiredNumberScheduled)
		}
		return ""
	})
	if err := sets.Delete(context.WithoutCancel(t.Context()), set.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// hung measures what a replica costs that takes calls and answers none, until its probe fails: the timeouts of both webhooks.
// Pods without GPUs still do not wait.
func (l *lab) hung(t *testing.T) {
	for _, p := range l.Replicas {
		defer p.Pause()()
	}
	begin := time.Now()
	_, err := l.dryRun(t.Context(), team, slice())
	took := time.Since(begin)
	if err == nil {
		t.Error("a slice passed with nobody to judge it")
	}
	added := l.added(t, "hung")
	t.Logf("hung: a slice is denied after %s, a pod without GPUs takes %s more", brief(took), brief(added))
	figure("everything down", "hung: denial after, added to others", "%s, %s", brief(took), brief(added))
}
