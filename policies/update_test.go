package policies_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/abuse"
)

// change is the update of old to the pod of in.
// verifyChange is Change.Verify.
func verifyChange(c policies.Change, governed func() (policies.Input, error)) (policies.Decision, error) {
	return c.Verify(governed)
}

func change(t testing.TB, in policies.Input, old *corev1.Pod, subresource string) (policies.Change, func() (policies.Input, error)) {
	t.Helper()
	return policies.Change{Old: encoded(t, old), New: encoded(t, in.Pod), Subresource: subresource},
		func() (policies.Input, error) { in.Pod = nil; return in, nil }
}

// updatedPod is the pod as an update to the pod of in leaves it: that one where nothing is to be put right.
func updatedPod(t testing.TB, in policies.Input, old *corev1.Pod, subresource string) *corev1.Pod {
	t.Helper()
	c, governed := change(t, in, old, subresource)
	_, ops, err := c.Mutate(governed)
	if err != nil {
		t.Fatal(err)
	}
	if len(ops) == 0 {
		return in.Pod
	}
	patch, err := jsonpatch.DecodePatch(encoded(t, ops))
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(c.New)
	if err != nil {
		t.Fatal(err)
	}
	raw, violation, err := rawpod.Decode(after)
	if err != nil || violation != nil {
		t.Fatal(err, violation)
	}
	return raw.Pod
}

// verifyUpdate returns what the update of old to the pod of in is denied for.
func verifyUpdate(t testing.TB, in policies.Input, old *corev1.Pod, subresource string) []api.Violation {
	t.Helper()
	d, err := verifyChange(change(t, in, old, subresource))
	if err != nil {
		t.Fatal(err)
	}
	return d.Violations
}

func encoded(t testing.TB, value any) []byte {
	t.Helper()
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestChangeConcerns(t *testing.T) {
	t.Parallel()
	plain, promised, hidden := []byte(`{"spec":{}}`), []byte(`{"metadata":{"annotations":{"gpuslice.dev/promise":"{}"}}}`),
		[]byte(`{"env":[{"name":"NVIDIA_VISIBLE_DEVICES"}]}`)
	for name, tt := range map[string]struct {
		change policies.Change
		want   bool
	}{
		"a pod that gpuslice has nothing on": {policies.Change{Old: plain, New: plain}, false},
		"a pod with a promise":               {policies.Change{Old: promised, New: plain}, true},
		"a pod that is given a promise":      {policies.Change{Old: plain, New: promised}, true},
		"a pod that is given a label": {policies.Change{Old: plain, New: []byte(`{"metadata":{"labels":{"gpuslice.dev/memory":"4Gi"}}}`)},
			true},
		"a pod that had the label": {policies.Change{Old: []byte(`{"metadata":{"labels":{"gpuslice.dev/memory":"4Gi"}}}`),
			New: []byte(`{"metadata":{"labels":{"gpuslice.dev/memory":"4Gi"}}}`)}, false},
		"a pod whose devices are hidden": {policies.Change{Old: hidden, New: plain}, true},
		"an ephemeral container":         {policies.Change{Old: plain, New: plain, Subresource: "ephemeralcontainers"}, true},
		"an annotation that takes devices": {policies.Change{Old: plain,
			New: []byte(`{"metadata":{"annotations":{"nvidia.com/container.a.gpus.devices":"all"}}}`)}, true},
		"a resize":            {policies.Change{Old: plain, New: plain, Subresource: "resize"}, true},
		"another subresource": {policies.Change{Old: promised, New: promised, Subresource: "status"}, false},
	} {
		if got := tt.change.Concerns(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestLateLabels requests a slice by labels of live pods without one.
func TestLateLabels(t *testing.T) {
	t.Parallel()
	size := map[string]string{api.LabelMemory: "4Gi"}
	for name, tt := range map[string]struct {
		pod      string // of livePods
		old, now map[string]string
		deleted  bool
		warned   bool
	}{
		"of a whole GPU":              {pod: "with a whole GPU", now: size, warned: true},
		"without a GPU":               {pod: "without a GPU", now: size, warned: true},
		"that is there already":       {pod: "with a whole GPU", old: size, now: map[string]string{api.LabelMemory: "4Gi", "app": "train"}},
		"that goes":                   {pod: "with a whole GPU", old: size},
		"of a pod that is deleted":    {pod: "with a whole GPU", now: size, deleted: true},
		"where no policy is in force": {pod: "ungoverned", now: size},
		"where policy audits":         {pod: "audited", now: size},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := livePods(t)[tt.pod]
			old := in.Pod.DeepCopy()
			old.Labels, in.Pod.Labels = tt.old, tt.now
			if tt.deleted {
				in.Pod.DeletionTimestamp = new(metav1.Now())
			}
			c, governed := change(t, in, old, "")
			d, _, err := c.Mutate(governed)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"label gpuslice.dev/memory has no effect on a live pod: create the pod again with it"}
			if !tt.warned {
				want = nil
			}
			if !slices.Equal(d.Warnings, want) {
				t.Errorf("%q, want %q", d.Warnings, want)
			}
		})
	}
}

// TestUpdate updates every pod that was mutated to what its author wrote, and to itself: what comes out passes.
func TestUpdate(t *testing.T) {
	t.Parallel()
	for _, c := range created(t) {
		if c.d.Outcome != policies.Mutated && c.d.Outcome != policies.DevicesHidden {
			continue
		}
		in, live := c.in, c.d.Rewrite(c.in.Pod)
		for name, updated := range map[string]*corev1.Pod{"its author's manifest": c.in.Pod, "itself": live} {
			in.Pod = updated
			after := updatedPod(t, in, live, "")
			if name == "itself" && after != live {
				t.Errorf("%s: an update that changes nothing is put right", c.s.Name)
			}
			in.Pod = after
			if found := verifyUpdate(t, in, live, ""); len(found) > 0 {
				t.Errorf("%s, updated to %s: %v", c.s.Name, name, found)
			}
			if c.d.Promise != nil && after.Annotations[api.AnnotationPromise] != live.Annotations[api.AnnotationPromise] {
				t.Errorf("%s, updated to %s: another promise", c.s.Name, name)
			}
		}
	}
}

func TestDevicesOfALivePod(t *testing.T) {
	t.Parallel()
	const key = "nvidia.cdi.k8s.io/container.a"
	for name, tt := range map[string]struct {
		pod  string // of livePods
		edit func(old, updated *corev1.Pod)
		want bool
	}{
		"added to a slice": {"in a slice", func(_, updated *corev1.Pod) { updated.Annotations[key] = "nvidia.com/gpu=all" }, true},
		"added beside no GPU": {"without a GPU",
			func(_, updated *corev1.Pod) { updated.Annotations = map[string]string{key: "nvidia.com/gpu=all"} }, true},
		"added where nothing rules": {"ungoverned",
			func(_, updated *corev1.Pod) { updated.Annotations = map[string]string{key: "nvidia.com/gpu=all"} }, false},
		"changed": {"without a GPU", func(old, updated *corev1.Pod) {
			old.Annotations, updated.Annotations = map[string]string{key: "nvidia.com/gpu=0"}, map[string]string{key: "nvidia.com/gpu=1"}
		}, true},
		"there before": {"without a GPU", func(old, updated *corev1.Pod) {
			old.Annotations, updated.Annotations = map[string]string{key: "nvidia.com/gpu=0"}, map[string]string{key: "nvidia.com/gpu=0", "a": "b"}
		}, false},
		"removed": {"without a GPU", func(old, _ *corev1.Pod) { old.Annotations = map[string]string{key: "nvidia.com/gpu=0"} }, false},
		"added to a pod that goes": {"without a GPU", func(_, updated *corev1.Pod) {
			updated.Annotations, updated.DeletionTimestamp = map[string]string{key: "nvidia.com/gpu=all"}, &metav1.Time{Time: time.Unix(1, 0)}
		}, false},
	} {
		in := livePods(t)[tt.pod]
		old := in.Pod
		in.Pod = old.DeepCopy()
		tt.edit(old, in.Pod)
		if found := verifyUpdate(t, in, old, ""); len(found) > 0 != tt.want {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// TestLargeUpdate: who adds more than is read to a live pod changes nothing else in its shade.
func TestLargeUpdate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pod  string // of livePods
		ours bool
		want bool
	}{
		"of a slice":              {"in a slice", false, true},
		"beside no GPU":           {"without a GPU", false, true},
		"where nothing rules":     {"ungoverned", false, false},
		"of a slice, by gpuslice": {"in a slice", true, false},
	} {
		in := livePods(t)[tt.pod]
		old := in.Pod
		in.Pod = old.DeepCopy()
		metav1.SetMetaDataAnnotation(&in.Pod.ObjectMeta, "nvidia.cdi.k8s.io/container.a", "nvidia.com/gpu=all")
		for range 25_000 {
			in.Pod.Spec.Tolerations = append(in.Pod.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		}
		c, governed := change(t, in, old, "")
		c.Ours = tt.ours
		d, err := c.Verify(governed)
		if denied := d.Outcome == policies.Denied; err != nil || denied != tt.want ||
			denied && !strings.Contains(d.Message(), "more than 20000 objects") {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		if tt.want {
			abuse.Report(t,
				abuse.Attempt{Threat: "A16", Attack: "25,000 tolerations and an annotation that takes devices, added to a live pod " + name,
					Outcome: abuse.Denied, Words: d.Message()})
		}
	}
}
