package podedit

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/shim"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// authoredPod has something of the author's beside everything that an edit writes.
func authoredPod() *corev1.Pod {
	one := corev1.ResourceList{api.ResourceGPU: resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("4")}
	zone := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "train", Annotations: map[string]string{"team": "a"}},
		Spec: corev1.PodSpec{
			SchedulerName:    corev1.DefaultSchedulerName,
			ResourceClaims:   []corev1.PodResourceClaim{{Name: "nic", ResourceClaimName: new("nic")}},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "own"}},
			Tolerations:      []corev1.Toleration{{Key: "own", Operator: corev1.TolerationOpExists}},
			Volumes:          []corev1.Volume{{Name: "data"}},
			InitContainers:   []corev1.Container{{Name: "fetch", Env: []corev1.EnvVar{{Name: "FROM", Value: "s3"}}}},
			Containers: []corev1.Container{
				{
					Name: "main", Command: []string{"python"}, Args: []string{"train.py"}, Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
					Resources:    corev1.ResourceRequirements{Limits: one.DeepCopy(), Requests: one},
				},
				{
					Name: "second", Command: []string{"python"}, Env: []corev1.EnvVar{{Name: "PYTHONPATH", Value: "/app:"}, {Name: "A", Value: "b"}},
					Resources: corev1.ResourceRequirements{Limits: one.DeepCopy(), Requests: one.DeepCopy()},
				},
				{Name: "third", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "nic"}}}},
				{Name: "fourth", Image: "corp/train", Env: []corev1.EnvVar{{Name: "A", Value: "b"}},
					Resources: corev1.ResourceRequirements{Limits: one.DeepCopy(), Requests: one.DeepCopy()}},
				{Name: "beside", Env: []corev1.EnvVar{{Name: "C", Value: "d"}}},
			},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{zone}}}}}},
		},
	}
}

// fullPromise writes something of every kind.
func fullPromise() *promise.Promise {
	product := func(name string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "product", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		}
	}
	p := &promise.Promise{
		Version: promise.Version, Namespace: "team", Strategy: "time-slicing", Pools: []string{"l4"},
		Request: api.Request{Containers: []api.ContainerRequest{{Name: "main", Resource: api.ResourceGPU, GPUs: 1},
			{Name: "second", Resource: api.ResourceGPU, GPUs: 1}, {Name: "third", GPUs: 1}, {Name: "fourth", Resource: api.ResourceGPU, GPUs: 1}},
			Explicit: true},
		Containers: []promise.Container{{
			Name: "main", Shim: shim.ByCommand, Resource: nvidia.SharedGPU, Count: 1, Slice: 4096,
			Env:    []podspec.Variable{{Name: nvidia.EnvMemoryBytes, Value: "4294967296"}, {Name: "PYTORCH_CUDA_ALLOC_CONF", Value: "x"}},
			Mounts: []corev1.VolumeMount{{Name: "gpuslice-mps", MountPath: "/mps"}},
			Args:   []string{"--fraction", "0.25"},
		}, {Name: "second", Shim: shim.ByVariable, Resource: nvidia.SharedGPU, Count: 1, Slice: 4096},
			{Name: "third", Count: 1, Slice: 4096, Claim: "gpuslice-third", Template: "gpuslice-4396mi"},
			{Name: "fourth", Shim: shim.ByFile, Resource: nvidia.SharedGPU, Count: 1, Slice: 4096,
				Env: []podspec.Variable{{Name: nvidia.EnvAllocatorBytes, Value: "4294967296"}}}},
		Volumes:     []corev1.Volume{{Name: "gpuslice-mps"}},
		Affinity:    []corev1.NodeSelectorTerm{product("L4"), product("T4")},
		Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}},
		Hidden:      []string{"fetch", "beside"},
		Guard: &promise.Guard{Image: "guard", CPU: "20m", Memory: "64Mi", PullSecret: "guard", Shares: true,
			Resource: nvidia.SharedGPU, Count: 1, Annotations: map[string]string{"cdi": "all"}},
		Planned: promise.Planned{Strategy: "time-slicing", Pool: "l4"},
	}
	p.Pod.PriorityClassName, p.Pod.SchedulerName, p.Pod.RuntimeClassName, p.Pod.HostIPC = "low", "binpack", "nvidia", true
	return p
}

func TestEveryEdit(t *testing.T) {
	t.Parallel()
	lists := map[string]editList{"all of them": edits(nil)}
	for _, e := range edits(nil) {
		lists[reflect.TypeOf(e).Name()] = editList{e}
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := fullPromise()
			pod := list.apply(authoredPod(), new(promise.Promise), given)
			if equality.Semantic.DeepEqual(pod, authoredPod()) {
				t.Fatal("the promise writes nothing of this kind")
			}
			t.Run("applied twice is applied once", func(t *testing.T) {
				wantPod(t, pod, list.apply(pod, given, given))
			})
			t.Run("applied anew after being read back", func(t *testing.T) {
				wantPod(t, pod, list.apply(pod, fullPromise(), given))
			})
			t.Run("reverted", func(t *testing.T) {
				wantPod(t, authoredPod(), list.reverted(pod, given))
			})
			t.Run("reverted where somebody else changed it", func(t *testing.T) {
				changed := pod.DeepCopy()
				changed.Spec.SchedulerName, changed.Spec.PriorityClassName = "theirs", "theirs"
				changed.Spec.Containers[0].Env = append(changed.Spec.Containers[0].Env, corev1.EnvVar{Name: "PYTORCH_CUDA_ALLOC_CONF", Value: "theirs"})
				list.revert(changed, given, new(promise.Promise))
				env := changed.Spec.Containers[0].Env
				if s := changed.Spec; s.SchedulerName != "theirs" || s.PriorityClassName != "theirs" || env[len(env)-1].Value != "theirs" {
					t.Error("what is theirs does not stay")
				}
			})
			t.Run("restored after the author's manifest", func(t *testing.T) {
				before, updated := pod.DeepCopy(), authoredPod()
				wantPod(t, pod, list.restored(pod, updated, given))
				wantPod(t, before, pod)
				wantPod(t, authoredPod(), updated)
			})
			t.Run("restored in an update without a change", func(t *testing.T) {
				wantPod(t, pod, list.restored(pod, pod, given))
			})
		})
	}
}

func (l editList) reverted(pod *corev1.Pod, old *promise.Promise) *corev1.Pod {
	out := pod.DeepCopy()
	l.revert(out, old, new(promise.Promise))
	return out
}

func (l editList) restored(old, updated *corev1.Pod, given *promise.Promise) *corev1.Pod {
	out := updated.DeepCopy()
	for _, e := range l {
		e.Restore(old, out, given)
	}
	return out
}

func wantPod(t *testing.T, want, got *corev1.Pod) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, got) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
}

// TestEditList puts in one more kind: what a new file and its line in edits bring with them.
func TestEditList(t *testing.T) {
	t.Parallel()
	list := append(edits(nil), subdomainEdit{})
	given := fullPromise()
	live := list.apply(authoredPod(), new(promise.Promise), given)
	if live.Spec.Subdomain != "slice" {
		t.Error("it is not applied")
	}
	wantPod(t, live, list.apply(live, given, given))
	if paths := list.undone(live, given); len(paths) > 0 {
		t.Errorf("it is said to be undone: %v", paths)
	}
	wantPod(t, live, list.restored(live, authoredPod(), given))

	changed := live.DeepCopy()
	changed.Spec.Subdomain = "theirs"
	if paths := list.undone(changed, given); !slices.Equal(paths, []string{"spec.subdomain"}) {
		t.Errorf("undone: %v", paths)
	}
	wantPod(t, authoredPod(), list.reverted(live, given))
}

// subdomainEdit is a kind that only this test knows.
type subdomainEdit struct{}

func (subdomainEdit) Apply(pod *corev1.Pod, _, _ *promise.Promise) { pod.Spec.Subdomain = "slice" }

func (subdomainEdit) Revert(pod *corev1.Pod, _, _ *promise.Promise) {
	if pod.Spec.Subdomain == "slice" {
		pod.Spec.Subdomain = ""
	}
}

func (subdomainEdit) Restore(old, updated *corev1.Pod, _ *promise.Promise) {
	updated.Spec.Subdomain = old.Spec.Subdomain
}

// TestEditFiles holds the kinds to the files that are named by them: a file whose line is missing in edits does nothing.
func TestEditFiles(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, e := range edits(nil) {
		kind := strings.TrimSuffix(reflect.TypeOf(e).Name(), "Edit")
		want = append(want, "edit_"+strings.ToLower(kind)+".go")
	}
	files, err := filepath.Glob("edit_*.go")
	if err != nil {
		t.Fatal(err)
	}
	declares := regexp.MustCompile(`(?m)^type \w+Edit struct`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") && declares.Match(text) {
			got = append(got, file)
		}
	}
	slices.Sort(want)
	if !slices.Equal(want, got) {
		t.Errorf("kinds in edits: %v\nfiles:          %v", want, got)
	}
}
