package policies_test

import (
	"encoding/json"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/policies/rawpod"
)

// fuzzedInput is a transparent policy and two pools, without a testing.T.
func fuzzedInput() policies.Input {
	return policies.Input{
		Namespace: api.Namespace{Name: "n"}, Guard: &config.GuardSettings{Image: "g"},
		Policy: &config.Policy{Name: "fuzz", Mode: modes.Transparent, EnforcementMode: api.EnforceFull, Templates: modes.TemplatesRewrite,
			Strategies: []api.StrategyName{"time-slicing", "exclusive"}, Accept: []string{"fractional-quantity"},
			DefaultSlice: &config.SliceSpec{Memory: 4096}},
		Pools: []pools.Pool{
			{Name: "l4", Site: "l4", Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing",
				DeviceMemory: 23034, Reserve: 692, Replicas: 4, DriverMajor: 580},
			{Name: "a100", Site: "a100", Resource: "nvidia.com/gpu", Strategy: "exclusive", DeviceMemory: 81920, Replicas: 1},
		},
	}
}

// readable is the pod in text, or nil where it is none that is read.
func readable(text []byte) *corev1.Pod {
	raw, violation, err := rawpod.Decode(text)
	if err != nil || violation != nil {
		return nil
	}
	return raw.Pod
}

// FuzzMutate decides any pod: what is made of it is decided the same again, and never costs a container.
func FuzzMutate(f *testing.F) {
	f.Add([]byte(`{"metadata":{"labels":{"gpuslice.dev/memory":"4Gi"}},"spec":{"hostPID":true,"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":1}}}]}}`))
	f.Add([]byte(
		`{"spec":{"containers":[{"name":"a","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"},{"name":"NVIDIA_VISIBLE_DEVICES"}]}]}}`))
	f.Add([]byte(`{"spec":{"initContainers":[{"name":"gpuslice-guard"}],"containers":[{"name":"a","env":[{"name":"CUDA_VERSION"}]},{"name":"a"}],"volumes":[{"name":"v","hostPath":{"path":"/dev/../tmp"}}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		pod := readable(text)
		if pod == nil {
			return
		}
		in := fuzzedInput()
		in.Pod = pod
		d := policies.Decide(in)
		after := d.Rewrite(pod)
		if len(after.Spec.Containers) < len(pod.Spec.Containers) && d.Outcome == policies.DevicesHidden {
			t.Fatal("a container is gone")
		}
		if d.Outcome != policies.Mutated && d.Outcome != policies.DevicesHidden {
			return
		}
		in.Pod = after
		again := policies.Decide(in)
		if again.Outcome == policies.Denied {
			t.Fatalf("what comes out is denied: %s", again.Message())
		}
		a, _ := json.Marshal(after)
		if b, _ := json.Marshal(again.Rewrite(after)); string(a) != string(b) {
			t.Errorf("deciding again changes the pod:\n%s\n%s", a, b)
		}
	})
}

// FuzzCharge charges any pod: never less than nothing, and never less for a container more.
func FuzzCharge(f *testing.F) {
	f.Add([]byte(`{"spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":"9223372036854775807"}}}]}}`),
		[]byte(`{"name":"b","resources":{"limits":{"nvidia.com/gpu.shared":"2"}}}`))
	f.Add([]byte(
		`{"spec":{"initContainers":[{"name":"i","restartPolicy":"Always","resources":{"requests":{"nvidia.com/gpu":"1e18"}}}],"containers":[]}}`),
		[]byte(`{"resources":{"limits":{"nvidia.com/gpu":"-1"}}}`))
	f.Fuzz(func(t *testing.T, text, more []byte) {
		pod := readable(text)
		var container corev1.Container
		if pod == nil || json.Unmarshal(more, &container) != nil {
			return
		}
		offered := fuzzedInput().Pools
		before := accounting.Exclusive(pod, offered)
		for _, d := range quota.Dimensions() {
			if d.Amount(before.Charge) < 0 {
				t.Fatalf("charged %+v", before.Charge)
			}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		after := accounting.Exclusive(pod, offered)
		for _, d := range quota.Dimensions() {
			if d.Amount(after.Charge) < d.Amount(before.Charge) {
				t.Fatalf("%+v, and with one more container %+v", before.Charge, after.Charge)
			}
		}
	})
}

// FuzzRestore updates a live pod to anything: what is put back is put back once, and the promise stays.
func FuzzRestore(f *testing.F) {
	f.Add([]byte(`{"metadata":{"labels":{"gpuslice.dev/memory":"4Gi"}},"spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`))
	f.Add([]byte(`{"metadata":{"annotations":{"gpuslice.dev/promise":"{}"}},"spec":{"containers":[{"name":"a","env":[{"name":"GPUSLICE_FRACTION","value":"1"}]}]}}`))
	f.Add([]byte(`{"spec":{"initContainers":[{"name":"gpuslice-guard","image":"x"}],"containers":[{"name":"gpuslice-guard"}]}}`))
	in := fuzzedInput()
	in.Pod = readable([]byte(`{"metadata":{"labels":{"gpuslice.dev/memory":"4Gi"}},"spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":"1"}}},{"name":"b"}]}}`))
	live := policies.Decide(in).Rewrite(in.Pod)
	if live == in.Pod {
		f.Fatal("there is no live pod")
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		updated := readable(text)
		if updated == nil || updated.DeletionTimestamp != nil {
			return
		}
		after, _ := podedit.Restore(live, updated)
		if after.Annotations[api.AnnotationPromise] != live.Annotations[api.AnnotationPromise] {
			t.Fatal("the promise is gone")
		}
		again, _ := podedit.Restore(live, after)
		a, _ := json.Marshal(after)
		if b, _ := json.Marshal(again); string(a) != string(b) {
			t.Errorf("restored once more:\n%s\n%s", a, b)
		}
		in := in
		in.Pod = updated
		verifyUpdate(t, in, live, "")
		verifyUpdate(t, in, live, "resize")
	})
}

// FuzzEphemeral adds any ephemeral container to a live pod: it gets no device, and those that are there stay.
func FuzzEphemeral(f *testing.F) {
	f.Add([]byte(`{"name":"d","image":"busybox","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}`))
	f.Add([]byte(`{"name":"gpuslice-x","securityContext":{"privileged":true,"capabilities":{"add":["cap_all"]}},"volumeMounts":[{"name":"gpuslice-mps-pipe","mountPath":"run/nvidia-container-devices/"}]}`))
	f.Add([]byte(`{"name":"there","env":[{"name":"CUDA_VERSION","valueFrom":{}}]}`))
	in := fuzzedInput()
	in.Pod = readable([]byte(`{"metadata":{"labels":{"gpuslice.dev/memory":"4Gi"}},"spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`))
	old := policies.Decide(in).Rewrite(in.Pod)
	there := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "there", Image: "x"}}
	old.Spec.EphemeralContainers = []corev1.EphemeralContainer{there}
	f.Fuzz(func(t *testing.T, text []byte) {
		var c corev1.EphemeralContainer
		if json.Unmarshal(text, &c) != nil {
			return
		}
		in := in
		in.Pod = old.DeepCopy()
		in.Pod.Spec.EphemeralContainers = append(in.Pod.Spec.EphemeralContainers, c)
		verifyUpdate(t, in, old, "ephemeralcontainers")
		after := updatedPod(t, in, old, "ephemeralcontainers")
		if list := after.Spec.EphemeralContainers; len(list) != 2 || list[0].Image != there.Image || len(list[0].Env) > 0 {
			t.Fatalf("what is there changed: %+v", list)
		}
		named := 0 // entries that name devices: without one, the image's may say "all"
		for _, e := range after.Spec.EphemeralContainers[1].Env {
			if e.Name != nvidia.EnvVisibleDevices {
				continue
			}
			named++
			// NVIDIA's toolkit gives no device for these (its package internal/config/image).
			if e.ValueFrom != nil || !slices.Contains([]string{"", "none", "void"}, e.Value) {
				t.Errorf("%s gets devices: %v", text, e)
			}
		}
		if c.Name != there.Name && named != 1 {
			t.Errorf("%s names devices %d times", text, named)
		}
	})
}

// FuzzCheckTemplate looks at anything: what it rewrites is a patch that applies, after which nothing is found.
func FuzzCheckTemplate(f *testing.F) {
	f.Add([]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":"0.25"}}}]}}}}`))
	f.Add([]byte(`{"spec":{"jobTemplate":{"spec":{"template":{"metadata":null,"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":0.5,"a":null}}}]}}}}}}`))
	f.Add([]byte(`{"spec":{"template":{"spec":{"containers":[null,{"resources":{"limits":{"nvidia.com/gpu":"1e10000000"}}}]}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var tree map[string]any
		if json.Unmarshal(text, &tree) != nil {
			return
		}
		policy := fuzzedInput().Policy
		_, ops := policies.CheckTemplate(policy, "Deployment", tree)
		if len(ops) == 0 {
			return
		}
		patch, err := json.Marshal(ops)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatal(err)
		}
		document, _ := json.Marshal(tree)
		after, err := decoded.Apply(document)
		if err != nil {
			t.Fatalf("%s does not apply to %s: %v", patch, document, err)
		}
		var again map[string]any
		if err := json.Unmarshal(after, &again); err != nil {
			t.Fatal(err)
		}
		if v, ops := policies.CheckTemplate(policy, "Deployment", again); v != nil || len(ops) > 0 {
			t.Errorf("rewritten, it is not done: %v %v", v, ops)
		}
	})
}
