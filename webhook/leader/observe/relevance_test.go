package observe

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/promise"
)

// TestNodeChanges: the pods of a node are observed again where a label changes that observations read, and no pod is where another does.
func TestNodeChanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		plan string // "": time-slicing
		edit func(labels map[string]string)
		want bool
	}{
		"a label of nobody's":         {edit: func(l map[string]string) { l["example.com/wave"] = "1" }},
		"the time of discovery":       {edit: func(l map[string]string) { l["nvidia.com/gfd.timestamp"] = "1772000000" }},
		"nothing":                     {edit: func(map[string]string) {}},
		"the driver":                  {edit: func(l map[string]string) { l["nvidia.com/cuda.driver-version.major"] = "550" }, want: true},
		"a driver's last digits":      {edit: func(l map[string]string) { l["nvidia.com/cuda.driver-version.minor"] = "01" }, want: true},
		"how devices are shared":      {edit: func(l map[string]string) { l["nvidia.com/gpu.sharing-strategy"] = "mps" }, want: true},
		"labels that discovery drops": {edit: func(l map[string]string) { clear(l) }, want: true},
		"a label that policy chose":   {plan: "driver", edit: func(l map[string]string) { l[corev1.LabelHostname] = "another" }, want: true},
		"a label that policy did not": {edit: func(l map[string]string) { l[corev1.LabelHostname] = "another" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.plan == "" {
				tt.plan = "time-slicing"
			}
			s := started(t, tt.plan)
			var r relevance
			r.add(s.promise)
			after := s.node.DeepCopy()
			tt.edit(after.Labels)
			enqueued := 0
			onNodes(r.changed, func(string) { enqueued++ }).OnUpdate(s.node, after)
			if enqueued > 0 != tt.want {
				t.Errorf("the pods of the node were enqueued %d times", enqueued)
			}
			before := s.observe()
			if s.node = after; !tt.want && s.observe().Encode() != before.Encode() {
				t.Errorf("observed %+v, and before %+v", s.observe(), before)
			}
		})
	}
	t.Run("promises that name too much", func(t *testing.T) {
		t.Parallel()
		var r relevance
		for k := range maxRelevant + 1 {
			r.add(&promise.Promise{Containers: []promise.Container{{Resource: fmt.Sprint("example.com/", k)}}})
		}
		s := started(t, "time-slicing")
		after := s.node.DeepCopy()
		after.Labels["example.com/wave"] = "1"
		if !r.changed(s.node, after) {
			t.Error("the change was left out")
		}
	})
}

// TestWaveOfLabels: a label that matters is still observed after one that does not.
func TestWaveOfLabels(t *testing.T) {
	s := owned(t)
	inLab(t, func(l *lab) {
		r := l.replica("a")
		defer r.stop()
		l.pass(time.Minute)
		l.patches()
		s.set("example.com/wave", "1")
		l.label(s)
		if n := l.patches(); n > 0 || l.observed().State != Enforced {
			t.Errorf("%d patches, observed %+v", n, l.observed())
		}
		s.set("nvidia.com/cuda.driver-version.major", "550")
		l.label(s)
		if o := l.observed(); o.State != Degraded {
			t.Errorf("observed %+v", o)
		}
	}, s.pod, s.node)
}
