package policies_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/abuse"
)

// l4 is a pool of four replicas of an L4 that two labels select.
func l4(name, product string, memory quantity.MiB) pools.Pool {
	return pools.Pool{
		Name: name, Site: name, Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing", Product: product,
		DeviceMemory: memory, Reserve: 512, Replicas: 4, DriverMajor: 570, Requirements: []corev1.NodeSelectorRequirement{
			{Key: "nvidia.com/gpu.product", Operator: corev1.NodeSelectorOpIn, Values: []string{product}},
		},
		Labels: map[string]string{"nvidia.com/gpu.product": product},
		Nodes:  oneNode(name, map[string]string{"nvidia.com/gpu.product": product, "zone": "a"}).Nodes,
	}
}

// oneNode is the pool of a node of that name and labels.
func oneNode(name string, labels map[string]string) pools.Pool {
	labels[corev1.LabelHostname] = name
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	node.Status.Allocatable = corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}
	return pools.FromNodes([]*corev1.Node{node}, config.PoolsSpec{}, nil)[0]
}

// brought is the input of a pod that asks for one whole GPU under a transparent policy.
func brought(t *testing.T, more string) (policies.Input, *corev1.Pod) {
	t.Helper()
	p, problems := config.Parse("gpuslice-system/default", []byte(
		"apiVersion: gpuslice.dev/v1\nmode: transparent\nenforcementMode: enforce\nstrategies: [time-slicing]\ndefaultSlice: {memory: 2Gi}\n"+
			more))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "team"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{asksGPU("main")}}}
	return policies.Input{
		Pod: pod, Policy: p, Namespace: api.Namespace{Name: "team"}, Guard: &config.GuardSettings{Image: "gpuslice/guard:1"},
		Pools: []pools.Pool{l4("small", "NVIDIA-T4", 15360), l4("large", "NVIDIA-L4", 23034)},
	}, pod
}

func asksGPU(name string) corev1.Container {
	one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	return corev1.Container{Name: name, Image: "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime",
		Resources: corev1.ResourceRequirements{Limits: one.DeepCopy(), Requests: one}}
}

// rewritten decides and applies.
func rewritten(t *testing.T, in policies.Input) *corev1.Pod {
	t.Helper()
	d := policies.Decide(in)
	if d.Outcome != policies.Mutated {
		t.Fatalf("%s %s: %s", d.Outcome, d.UnchangedReason, d.Message())
	}
	return podedit.Apply(d.Promise, in.Pod)
}

func wholeGPUs(pod *corev1.Pod) (names []string) {
	for _, c := range pod.Spec.Containers {
		if _, ok := c.Resources.Limits["nvidia.com/gpu"]; ok {
			names = append(names, c.Name)
		}
	}
	return names
}

func TestForgedPromise(t *testing.T) {
	t.Run("does not keep a whole GPU", func(t *testing.T) {
		for name, forged := range map[string]string{
			"it records that no GPU was asked":         `{"v":1,"containers":[{"name":"main","resource":"nvidia.com/gpu","count":1}],"request":{"containers":[{"name":"main","gpus":0}]}}`,
			"it records that no resource was named":    `{"v":1,"containers":[{"name":"main","resource":"nvidia.com/gpu","count":1}],"request":{"containers":[{"name":"main","gpus":1}]}}`,
			"it records that something else was asked": `{"v":1,"containers":[{"name":"main","resource":"nvidia.com/gpu","count":1}],"request":{"containers":[{"name":"main","resource":"cpu","gpus":1}]}}`,
			"it records that several were asked":       `{"v":1,"containers":[{"name":"main","resource":"nvidia.com/gpu","count":1}],"request":{"containers":[{"name":"main","resource":"nvidia.com/gpu","gpus":2}]}}`,
			"for the second container":                 `{"v":1,"containers":[{"name":"second","resource":"nvidia.com/gpu","count":1}],"request":{"explicit":true,"containers":[{"name":"second","gpus":1}]}}`,
		} {
			t.Run(name, func(t *testing.T) {
				in, pod := brought(t, "")
				if name == "it records that several were asked" {
					in.Policy.Strategies = append(in.Policy.Strategies, "exclusive")
				}
				pod.Spec.Containers = append(pod.Spec.Containers, asksGPU("second"))
				pod.Annotations = map[string]string{api.AnnotationPromise: forged}
				if name != "for the second container" {
					pod.Spec.Containers = pod.Spec.Containers[:1]
				}
				d := policies.Decide(in)
				if d.Outcome == policies.Denied {
					return
				}
				if d.Outcome != policies.Mutated {
					t.Fatalf("the pod is %s (%s) with its whole GPU", d.Outcome, d.UnchangedReason)
				}
				if left := wholeGPUs(podedit.Apply(d.Promise, pod)); len(left) > 0 {
					t.Errorf("%v keep a whole GPU", left)
				}
			})
		}
	})
	t.Run("does not hide a GPU of a pod that gets no slice", func(t *testing.T) {
		for name, c := range map[string]struct {
			gpus, forged string
			change       func(*corev1.Pod)
		}{
			"as parts of a GPU": {"8", `{"v":1,"containers":[{"name":"main","resource":"nvidia.com/gpu","count":8,"granule":"1Mi","replicas":8}],"request":{"containers":[{"name":"main","gpus":1}]}}`,
				func(*corev1.Pod) {}},
			"as a request of a system that is not accepted": {"1",
				`{"v":1,"containers":[{"name":"main","resource":"nvidia.com/gpu","count":1}],"request":{"explicit":true,"spellings":["kai"],"containers":[{"name":"main","gpus":1}]}}`,
				func(p *corev1.Pod) { p.Annotations["gpu-fraction"] = "0.5" }},
			"beside the label that opts out": {"1",
				`{"v":1,"containers":[{"name":"main","resource":"nvidia.com/gpu","count":1}],"request":{"explicit":true,"containers":[{"name":"main","gpus":1}]}}`,
				func(p *corev1.Pod) { p.Labels = map[string]string{api.LabelShare: api.ShareDisabled} }},
		} {
			t.Run(name, func(t *testing.T) {
				in, pod := brought(t, "")
				pod.Annotations = map[string]string{api.AnnotationPromise: c.forged}
				asks := corev1.ResourceList{api.ResourceGPU: resource.MustParse(c.gpus)}
				pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: asks, Requests: asks.DeepCopy()}
				c.change(pod)
				d := policies.Decide(in)
				if d.Outcome == policies.Unchanged {
					t.Errorf("the pod is unchanged (%s) with %s whole GPUs", d.UnchangedReason, c.gpus)
				}
				in.Pod = d.Rewrite(pod)
				left := wholeGPUs(in.Pod)
				if v := policies.Verify(in, nil); v.Outcome == policies.Unchanged && len(left) > 0 {
					t.Errorf("verified as %s (%s)", v.Outcome, v.UnchangedReason)
				}
				if d.Outcome == policies.Mutated && len(left) > 0 {
					t.Errorf("%v keep a whole GPU", left)
				}
			})
		}
	})
	t.Run("brings no number that labels may not have", func(t *testing.T) {
		for name, ask := range map[string]string{
			"compute above 100": `{"memory":"2Gi","compute":500}`, "compute below 0": `{"memory":"2Gi","compute":-5}`,
			"too many processes": `{"memory":"2Gi","processes":4611686018427387904}`,
			"two sizes":          `{"memory":"1Gi","class":"replica"}`,
		} {
			t.Run(name, func(t *testing.T) {
				in, pod := brought(t, "")
				pod.Annotations = map[string]string{api.AnnotationPromise: `{"v":1,"containers":[{"name":"main","resource":"nvidia.com/gpu","count":1}],"request":{"explicit":true,"containers":[{"name":"main","resource":"nvidia.com/gpu","gpus":1,"size":` + ask + `}]}}`}
				d := policies.Decide(in)
				if d.Outcome == policies.Denied {
					return
				}
				got := d.Promise.Request.Containers[0].Size
				if got.Compute < 0 || got.Compute > 100 || got.Processes > 64 || got.Memory != 0 && got.Class != "" {
					t.Errorf("the request is %+v", got)
				}
			})
		}
	})
	t.Run("does not hide that the guard sees nothing", func(t *testing.T) {
		in, pod := brought(t, "minimumEnforcement: guard\n")
		pod.Spec.ShareProcessNamespace = new(false)
		if d := policies.Decide(in); d.Outcome != policies.Denied {
			t.Fatalf("without a promise the pod is %s", d.Outcome)
		}
		pod.Annotations = map[string]string{api.AnnotationPromise: `{"v":1,"guard":{"image":"x","shares":true}}`}
		if d := policies.Decide(in); d.Outcome != policies.Denied {
			t.Errorf("the pod is %s, planned %s", d.Outcome, d.Planned.Tier)
		}
	})
}

func TestDecideAgain(t *testing.T) {
	t.Run("a slice that moves to another container leaves the first", func(t *testing.T) {
		in, pod := brought(t, "")
		pod.Labels = map[string]string{api.LabelMemory: "2Gi", api.LabelContainer: "main"}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "x"}, {Name: "second", Image: "x"}}
		moved := rewritten(t, in)
		moved.Labels[api.LabelContainer] = "second"
		in.Pod = moved
		after := rewritten(t, in)
		if r := after.Spec.Containers[0].Resources; len(r.Limits)+len(r.Requests) > 0 {
			t.Errorf("main still asks for %v", r.Limits)
		}
	})
	t.Run("the author's own fields survive the end of a guard", func(t *testing.T) {
		in, pod := brought(t, "guard: {runtimeClassName: nvidia}\n")
		in.Guard.PullSecret = "registry"
		pod.Spec.ShareProcessNamespace, pod.Spec.RuntimeClassName = new(true), new("nvidia")
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
		pod.Spec.Containers = append(pod.Spec.Containers,
			corev1.Container{Name: "log", Image: "busybox", Env: []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "void"}}})
		once := rewritten(t, in)
		in.Policy.Guard.Enabled = new(false)
		in.Pod = once
		after := rewritten(t, in)
		if s := after.Spec.ShareProcessNamespace; s == nil || !*s {
			t.Error("the author's shareProcessNamespace: true is gone")
		}
		if c := after.Spec.RuntimeClassName; c == nil || *c != "nvidia" {
			t.Error("the author's own runtime class is gone")
		}
		if len(after.Spec.ImagePullSecrets) != 1 {
			t.Error("the author's own pull secret is gone")
		}
		if c := after.Spec.Containers[1]; len(c.Env) != 1 || c.Env[0].Value != "void" {
			t.Errorf("the author's own NVIDIA_VISIBLE_DEVICES is %v", c.Env)
		}
	})
}
func TestGuardContainer(t *testing.T) {
	t.Run("does not get the tenant's mounts", func(t *testing.T) {
		abuse.Report(t, abuse.Attempt{Threat: "A23", Attack: "mounts of the tenant in the guard's container",
			Outcome: abuse.Contained, Words: "the guard has none of them"})
		in, pod := brought(t, "")
		pod.Spec.Volumes = []corev1.Volume{{Name: "mine", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		pod.Spec.InitContainers = []corev1.Container{
			{Name: "gpuslice-guard", Image: "x", VolumeMounts: []corev1.VolumeMount{{Name: "mine", MountPath: "/gpuslice-guard"}}},
		}
		for _, c := range rewritten(t, in).Spec.InitContainers {
			for _, m := range c.VolumeMounts {
				if m.Name == "mine" || m.MountPath == "/gpuslice-guard" {
					t.Errorf("%s mounts %s at %s", c.Name, m.Name, m.MountPath)
				}
			}
		}
	})
	t.Run("the check stands before every container that can reach a GPU", func(t *testing.T) {
		in, pod := brought(t, "")
		pod.Spec.InitContainers = []corev1.Container{asksGPU("first"), {Name: "gpuslice-guard", Image: "x"}, {Name: "gpuslice-check", Image: "x"}}
		var names []string
		for _, c := range rewritten(t, in).Spec.InitContainers {
			names = append(names, c.Name)
		}
		if diff := cmp.Diff([]string{"gpuslice-check", "gpuslice-guard", "first"}, names); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the check alone requests the agent of its node, and only where an agent guards", func(t *testing.T) {
		for mode, want := range map[string][]string{"": nil, "guard: {mode: agent}\n": {"gpuslice-check"}} {
			in, pod := brought(t, mode)
			pod.Spec.InitContainers = []corev1.Container{asksGPU("first")}
			var got []string
			out := rewritten(t, in)
			for _, c := range append(out.Spec.InitContainers, out.Spec.Containers...) {
				limit, request := c.Resources.Limits[limits.GuardedResource], c.Resources.Requests[limits.GuardedResource]
				if limit.Value() == 1 && request.Value() == 1 {
					got = append(got, c.Name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q (-want +got)\n%s", mode, diff)
			}
		}
	})
	t.Run("gpuslice's own containers are not counted", func(t *testing.T) {
		in, pod := brought(t, "")
		for i := 1; i < policies.MaxContainers; i++ {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "x"})
		}
		in.Pod = rewritten(t, in)
		rewritten(t, in)
	})
}

func TestEmptyNodeSelectorTerm(t *testing.T) {
	t.Run("still matches no node", func(t *testing.T) {
		in, pod := brought(t, "")
		zone := corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
		}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}, zone}}}}
		after := rewritten(t, in).Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		if len(after) != 2 || len(after[0].MatchExpressions) > 0 || len(after[1].MatchExpressions) < 2 {
			t.Errorf("the terms are %v", after)
		}
	})
}

func TestPromise(t *testing.T) {
	t.Run("one that is written can be read", func(t *testing.T) {
		for _, length := range []int{10, 400, 900} {
			in, pod := brought(t, "env: [{name: X, value: "+strings.Repeat("x", length)+"}]\n")
			for i := 1; i < 61; i++ {
				pod.Spec.Containers = append(pod.Spec.Containers, asksGPU(fmt.Sprintf("c%d", i)))
			}
			d := policies.Decide(in)
			if d.Outcome == policies.Denied {
				if length < 400 {
					t.Errorf("values of %d bytes: denied: %s", length, d.Message())
				}
				continue
			}
			if length > 400 {
				t.Errorf("values of %d bytes are recorded", length)
			}
			if _, err := promise.Decode(d.Promise.Encode()); err != nil {
				t.Errorf("values of %d bytes: %v", length, err)
			}
		}
	})
}
