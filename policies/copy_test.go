package policies_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// copiedTo are policies under which copies of live pods arrive: in another namespace, or years later.
var copiedTo = map[string]string{
	"other pools": `
strategies: [time-slicing, mps, mig, exclusive]
accept: [fractional-quantity]
defaultSlice: {memory: 2Gi}
classes: {small: {memory: 1Gi}, large: {memory: 6Gi}}`,
	"no guard and another block": `
mode: transparent
strategies: [time-slicing]
accept: [fractional-quantity]
defaultSlice: {memory: 2Gi}
guard: {enabled: false}
pod: {priorityClassName: other, schedulerName: other, runtimeClassName: other}`,
	"an own MPS daemon": `
strategies: [mps]
accept: [fractional-quantity]
pools:
  declared:
  - {name: own, selector: {example.com/mps: host}, resource: nvidia.com/gpu.shared, strategy: mps, mpsProvider: host-daemon, deviceMemory: 81559Mi, replicas: 8, driver: 580.95.05}
pod:
  tolerations: [{key: example.com/mps, operator: Exists}]`,
}

func TestCopy(t *testing.T) {
	t.Parallel()
	// Every live pod is copied (kubectl get -o yaml, a restored backup) into a namespace with another policy. Nothing
	// of what was given is left behind, and nothing of what was requested is lost.
	t.Run("a copy of a live pod becomes what its original would", func(t *testing.T) {
		t.Parallel()
		nodes, err := scenarios.Nodes("l40s-timeslicing-renamed", "a100-mig-mixed", "h100-host-daemon", "a10-timeslicing")
		if err != nil {
			t.Fatal(err)
		}
		compared, lives := 0, created(t)
		for name, document := range copiedTo {
			policy, problems := config.Parse(name, []byte("apiVersion: gpuslice.dev/v1"+document))
			if len(problems) > 0 {
				t.Fatal(name, problems.ToAggregate())
			}
			in := policies.Input{Namespace: api.Namespace{Name: "elsewhere"}, Policy: policy,
				Pools: pools.FromNodes(nodes, policy.Pools, nil), Guard: scenarios.Guard()}
			for _, c := range lives {
				if c.d.Outcome != policies.Mutated || speaksOfOurs(c.raw.Pod) {
					continue
				}
				in.Pod, in.LimitRanges = c.raw.Pod, c.in.LimitRanges
				original := policies.Decide(in)
				in.Pod = podedit.Apply(c.d.Promise, c.raw.Pod)
				copied := policies.Decide(in)
				if original.Outcome == policies.Unchanged && copied.Outcome == policies.DevicesHidden {
					continue // the copy's guard is nobody's guard here, and gets no device
				}
				if original.UnchangedReason == "request of another system" && copied.Outcome != policies.Unchanged {
					continue // the copy names the GPU of its slice, or the instance, and its promise may be forged
				}
				if original.Outcome != copied.Outcome || original.Message() != copied.Message() {
					t.Errorf("%s, %s: the original is %s (%s), its copy %s (%s)", c.s.Name, name, original.Outcome,
						original.Message(), copied.Outcome, copied.Message())
					continue
				}
				if original.Promise == nil {
					continue
				}
				compared++
				want, got := podedit.Apply(original.Promise, c.raw.Pod), podedit.Apply(copied.Promise, in.Pod)
				if diff := cmp.Diff(withoutRecord(t, want), withoutRecord(t, got)); diff != "" {
					t.Errorf("%s, %s (-original +copy):\n%s", c.s.Name, name, diff)
				}
			}
		}
		if compared < 100 {
			t.Errorf("%d copies were compared: the scenarios tell little", compared)
		}
	})
	// A guarded pod is copied to where there is no guard.
	t.Run("a pull secret is reverted where it was added", func(t *testing.T) {
		t.Parallel()
		for name, own := range map[string][]corev1.LocalObjectReference{
			"the author has none": nil, "the author has another": {{Name: "own"}}, "the author has the same": {{Name: "guard"}},
		} {
			in := sliced(t)
			in.Guard = &config.GuardSettings{Image: "i", PullSecret: "guard"}
			in.Pools[0].DriverMajor = 580
			raw, _, err := rawpod.Decode(podWith(gpuContainer("a")))
			if err != nil {
				t.Fatal(err)
			}
			in.Pod = raw.Pod
			in.Pod.Spec.ImagePullSecrets = own
			live := podedit.Apply(policies.Decide(in).Promise, in.Pod)
			if !slices.Contains(live.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: "guard"}) {
				t.Errorf("%s: the guard cannot be pulled: %v", name, live.Spec.ImagePullSecrets)
			}
			if back, _ := podedit.Restore(live, in.Pod); !slices.Equal(back.Spec.ImagePullSecrets, live.Spec.ImagePullSecrets) {
				t.Errorf("%s: an update leaves %v", name, back.Spec.ImagePullSecrets)
			}
			in.Guard, in.Pod = nil, live
			if after := podedit.Apply(policies.Decide(in).Promise, live); !slices.Equal(after.Spec.ImagePullSecrets, own) {
				t.Errorf("%s: its copy without a guard has %v", name, after.Spec.ImagePullSecrets)
			}
		}
	})
}

// speaksOfOurs reports whether the author used names of ours, which leave no trace in the live pod.
func speaksOfOurs(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			for _, e := range c.Env {
				if strings.HasPrefix(e.Name, "GPUSLICE_") || strings.HasPrefix(e.Name, "CUDA_MPS_") || strings.HasPrefix(e.Name, "NVIDIA_GPU_MEMORY_") {
					return true
				}
			}
		}
	}
	return false
}

// withoutRecord is a pod without the record of what was asked, which differs where a copy asks for whole units, and without
// what the server computes from the priority class; its variables are sorted, since those of ours stand where they stood.
func withoutRecord(t *testing.T, pod *corev1.Pod) map[string]any {
	t.Helper()
	pod = pod.DeepCopy()
	delete(pod.Annotations, api.AnnotationPromise)
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = nil, nil
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for name, q := range list[i].Resources.Limits { // as the server does where requests say nothing
				if _, ok := list[i].Resources.Requests[name]; !ok {
					list[i].Resources.Requests = maps.Clone(list[i].Resources.Requests)
					if list[i].Resources.Requests == nil {
						list[i].Resources.Requests = corev1.ResourceList{}
					}
					list[i].Resources.Requests[name] = q
				}
			}
			slices.SortFunc(list[i].Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
			slices.SortFunc(list[i].VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
		}
	}
	slices.SortFunc(pod.Spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	return treeOf(t, pod)
}
