package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

func TestUpgrade(t *testing.T) {
	cluster.Need(t) // else it would build two releases, and skip
	this, err := build()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the previous release and this one accept each other's pods", func(t *testing.T) {
		overAndBack(t, "previous release", buildPrevious(t), this)
	})
	t.Run("this release and one with newer rules accept each other's pods", func(t *testing.T) {
		if versions := overAndBack(t, "newer rules", this, buildNext(t)); len(versions) != 2 {
			t.Errorf("promises were of the versions %v: the builds are the same", versions)
		}
	})
}

// overAndBack upgrades replica by replica from one build to another under load, and back again. It returns the number of promises by the
// version of their rules.
func overAndBack(t *testing.T, name, from, to string) map[int]int {
	// Longer than the test: what a replica does at its end is the restarts' test, and the previous release ends as it did.
	l := newLab(t, cluster.Options{}, install.Options{Replicas: 3, Arguments: []string{"--drain", "2m"}}, from)
	ctx, cancel := context.WithTimeout(t.Context(), scaled(3*time.Minute, 20*time.Minute))
	defer cancel()
	l.reinvoke()
	lives := &lives{lab: l, versions: map[int]int{}}
	before := l.calls()
	loads := []*load{l.load(8, l.judged), l.load(4, lives.one)}
	for range scaled(1, 5) {
		for _, binary := range []string{to, from} {
			for k := range l.Replicas {
				l.must(l.replace(ctx, k, binary))
				pause(ctx, scaled(300*time.Millisecond, 3*time.Second)) // of living side by side, beside the old ones that drain
			}
		}
	}
	for _, load := range loads {
		load.end()
		if text := load.failures(); text != "" || load.count() == 0 {
			t.Errorf("of %d:\n%s", load.count(), text)
		}
	}
	told := l.calls().since(before)
	t.Logf("over and back: %.0f calls, %.0f unanswered; %d dry runs, %d lives of pods; promises by version: %v", told.made, told.unanswered,
		loads[0].count(), loads[1].count(), lives.versions)
	figure("upgrade, "+name, "calls, failed; lives of pods, failed", "%.0f, %.0f; %d, %d", told.made,
		told.unanswered, loads[1].count(), len(loads[1].failed))
	if told.unanswered > 0 {
		t.Errorf("%.0f calls were not answered", told.unanswered)
	}
	return lives.versions
}

// lives are pods that are created, updated and deleted, and looked at in between.
type lives struct {
	*lab
	mu       sync.Mutex
	versions map[int]int // promises by the version of their rules
}

// one is the life of a pod. Whichever replica gave it its slice, all of them have to accept what is done with it.
func (l *lives) one(ctx context.Context) error {
	pods := l.Server.Client.CoreV1().Pods(team)
	p, err := pods.Create(ctx, slice(), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	given := p.Annotations[api.AnnotationPromise]
	if err := errors.Join(once(p), l.note(given)); err != nil {
		return err
	}
	for _, patch := range []string{
		`{"metadata":{"labels":{"example.com/step":"1"}}}`,             // nothing of ours
		`{"metadata":{"annotations":{"gpuslice.dev/planned":"none"}}}`, // ours: put back
		`{"metadata":{"finalizers":["example.com/wait"]}}`,
		`{"metadata":{"finalizers":null}}`,
	} {
		if p, err = pods.Patch(ctx, p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("patch %s: %w", patch, err)
		}
		if err := once(p); err != nil {
			return fmt.Errorf("after patch %s: %w", patch, err)
		}
	}
	_, err = pods.Patch(ctx, p.Name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"gpuslice.dev/memory":"2Gi"}}}`), metav1.PatchOptions{})
	if err == nil {
		return errors.New("a slice was made larger by a label")
	}
	copied := slice() // as kubectl debug --copy-to does
	copied.Annotations, copied.Spec = p.Annotations, p.Spec
	if copied, err = l.dryRun(ctx, team, copied); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	if err := once(copied); err != nil {
		return fmt.Errorf("a copy: %w", err)
	}
	return pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
}

// note counts the version of a promise.
func (l *lives) note(promise string) error {
	var p struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal([]byte(promise), &p); err != nil {
		return fmt.Errorf("read promise %q: %w", promise, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions[p.Version]++
	return nil
}

// once says what of ours a pod does not carry exactly once.
func once(p *corev1.Pod) error {
	if p.Annotations[api.AnnotationPromise] == "" || p.Annotations[api.AnnotationPlanned] == "" {
		return errors.New("the pod has no slice")
	}
	var containers []string
	for _, c := range append(slices.Clone(p.Spec.InitContainers), p.Spec.Containers...) {
		containers = append(containers, c.Name)
		var variables []string
		for _, e := range c.Env {
			variables = append(variables, e.Name)
		}
		if twice := repeated(variables); twice != "" {
			return fmt.Errorf("container %s has variable %s twice", c.Name, twice)
		}
	}
	if twice := repeated(containers); twice != "" || !slices.Contains(containers, limits.GuardContainer) {
		return fmt.Errorf("the pod has containers %v", containers)
	}
	return nil
}

func repeated(names []string) string {
	slices.Sort(names)
	for k := 1; k < len(names); k++ {
		if names[k] == names[k-1] {
			return names[k]
		}
	}
	return ""
}
