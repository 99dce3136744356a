package accounting_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// resourceQuota reads a ResourceQuota's spec as its author writes it.
func resourceQuota(t *testing.T, spec string) *corev1.ResourceQuota {
	t.Helper()
	q := &corev1.ResourceQuota{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: team-a-gpus}\nspec: "+spec), q); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestNativeQuota(t *testing.T) {
	t.Run("is read as Kubernetes reads it", nativeAsKubernetes)
	t.Run("scopes match pods as in Kubernetes", nativeScopes)
	t.Run("limits renamed and other pods together", nativeRenamed)
	t.Run("authors of renamed pods get a warning", nativeWarning)
}

func nativeAsKubernetes(t *testing.T) {
	type want struct {
		Resource  string
		Hard      int64
		Uncounted bool
	}
	for spec, wants := range map[string][]want{
		"{hard: {requests.nvidia.com/gpu: 2, requests.nvidia.com/gpu.shared: 8, pods: 4, requests.cpu: 2}}": {{api.ResourceGPU, 2, false},
			{nvidia.SharedGPU, 8, false}},
		"{hard: {requests.cpu: 1, requests.amd.com/gpu: 2}}": nil,
		"{hard: {requests.nvidia.com/gpu: 1500m}}":           {{api.ResourceGPU, 1, false}},
		"{hard: {requests.nvidia.com/gpu: 1e400}}": {
			{api.ResourceGPU, quantity.MaxCharge, false},
		},
		"{hard: {requests.nvidia.com/gpu: 0}}":                                      {{api.ResourceGPU, 0, false}},
		"{hard: {requests.nvidia.com/gpu: 2}, scopes: [NotBestEffort]}":             {{api.ResourceGPU, 2, false}},
		"{hard: {requests.nvidia.com/gpu: 2}, scopes: [CrossNamespacePodAffinity]}": {{api.ResourceGPU, 2, true}},
		"{hard: {requests.nvidia.com/gpu: 2}, scopes: [VolumeAttributesClass]}":     nil,
	} {
		var got []want
		for _, n := range accounting.NativeQuotasOf(resourceQuota(t, spec)) {
			got = append(got, want{n.Resource, n.Hard, n.Uncounted != ""})
		}
		if diff := cmp.Diff(wants, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", spec, diff)
		}
	}
}

func nativeScopes(t *testing.T) {
	batch := quota.Traits{PriorityClass: "batch"}
	for _, c := range []struct {
		scopes string
		traits quota.Traits
		want   bool
	}{
		{"", batch, true},
		{"scopes: [Terminating]", batch, false},
		{"scopes: [Terminating]", quota.Traits{Terminating: true}, true},
		{"scopes: [NotTerminating, NotBestEffort]", batch, true},
		{"scopes: [NotTerminating, NotBestEffort]", quota.Traits{BestEffort: true}, false},
		{"scopes: [BestEffort]", quota.Traits{BestEffort: true}, true},
		{"scopes: [PriorityClass]", quota.Traits{}, false},
		{"scopes: [PriorityClass]", batch, true},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [batch, high]}]}", batch, true},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}", batch, false},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}", quota.Traits{}, false},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [high]}]}", quota.Traits{}, true},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [batch]}]}", batch, false},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}", quota.Traits{}, true},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}", batch, false},
		{"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}, {scopeName: Terminating, operator: Exists}]}",
			batch, false},
	} {
		n := accounting.NativeQuotasOf(resourceQuota(t, "{hard: {requests.nvidia.com/gpu: 2}, "+c.scopes+"}"))
		if len(n) != 1 || n[0].Scope.Pods.Match(c.traits) != c.want {
			t.Errorf("%s, %+v: want %t, got %+v", c.scopes, c.traits, c.want, n)
		}
	}
}

func nativeRenamed(t *testing.T) {
	native := accounting.NativeQuotasOf(resourceQuota(t,
		"{hard: {requests.nvidia.com/gpu: 2, requests.nvidia.com/gpu.shared: 9}, scopes: [NotTerminating]}"))
	renamed, _ := accounting.HoldingOf(testKeys(),
		gpuPod(promised("team-a", quota.Charge{Memory: 8192, Slices: 1}), asksFor("main", nvidia.SharedGPU, "1")), quotaPools())
	whole, _ := accounting.HoldingOf(testKeys(), gpuPod(nil, asksFor("main", api.ResourceGPU, "1")), quotaPools())
	q := accounting.WithNative(quota.Quota{}, &config.Policy{}, "team-a", native)
	if !q.Native() {
		t.Error("the limits of a ResourceQuota are not known as such")
	}
	held := renamed.Plus(whole)
	denial := func(q quota.Quota, h quota.Holding) string {
		if v := quota.Denial(q.Excess(held.In, h)); v != nil {
			return v.String()
		}
		return ""
	}
	const want = "exceeded quota: team-a-gpus (ResourceQuota), requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2"
	for name, h := range map[string]quota.Holding{"renamed": renamed, "not renamed": whole} {
		if diff := cmp.Diff(want, denial(q, h)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	terminating := renamed
	terminating.Traits.Terminating = true
	elsewhere := renamed
	elsewhere.Namespace = "team-b"
	for name, got := range map[string]string{
		"under audit, which renames nothing": denial(
			accounting.WithNative(quota.Quota{}, &config.Policy{EnforcementMode: api.EnforceAudit}, "team-a", native), renamed),
		"outside of the scope":            denial(q, terminating),
		"in a namespace that shares ours": denial(q, elsewhere),
		"where policy has them not counted": denial(
			accounting.WithNative(quota.Quota{}, &config.Policy{Quota: config.QuotaSpec{Native: modes.NativeOff}}, "team-a", native), renamed),
	} {
		if got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func nativeWarning(t *testing.T) {
	given := promised("team-a", quota.Charge{Slices: 1})
	pod := gpuPod(given, asksFor("main", nvidia.SharedGPU, "1"))
	of := func(spec string) []accounting.NativeQuota { return accounting.NativeQuotasOf(resourceQuota(t, spec)) }
	const old = "{hard: {requests.nvidia.com/gpu: 2, requests.nvidia.com/gpu.shared: 4}}"
	for name, c := range map[string]struct {
		spec   config.QuotaSpec
		native []accounting.NativeQuota
		pod    *corev1.Pod
		want   []string
	}{
		"counted": {config.QuotaSpec{},
			of(old), pod, []string{"ResourceQuota team-a-gpus counts nvidia.com/gpu; gpuslice counts this pod for it"}},
		"off": {config.QuotaSpec{Native: modes.NativeOff},
			of(old), pod, []string{"ResourceQuota team-a-gpus counts nvidia.com/gpu, which this pod does not name; policy has it not counted"}},
		"a scope that is not read": {config.QuotaSpec{}, of("{hard: {requests.nvidia.com/gpu: 2}, scopes: [CrossNamespacePodAffinity]}"), pod,
			[]string{"ResourceQuota team-a-gpus counts nvidia.com/gpu, which this pod does not name; it is not counted: gpuslice does not read its scope CrossNamespacePodAffinity"}},
		"a quota for other pods":     {config.QuotaSpec{}, of("{hard: {requests.nvidia.com/gpu: 2}, scopes: [Terminating]}"), pod, nil},
		"a pod that was not renamed": {config.QuotaSpec{}, of(old), gpuPod(nil, asksFor("main", api.ResourceGPU, "1")), nil},
		"many quotas": {config.QuotaSpec{Native: modes.NativeOff}, append(append(of(old), of(old)...), append(of(old), of(old)...)...), pod,
			[]string{
				"ResourceQuota team-a-gpus counts nvidia.com/gpu, which this pod does not name; policy has it not counted",
				"ResourceQuota team-a-gpus counts nvidia.com/gpu, which this pod does not name; policy has it not counted",
				"ResourceQuota team-a-gpus counts nvidia.com/gpu, which this pod does not name; policy has it not counted",
				"and 1 more ResourceQuotas"}},
	} {
		if diff := cmp.Diff(c.want, accounting.NativeWarnings(&config.Policy{Quota: c.spec}, c.pod, c.native, given)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestNativeWarningOfClaim(t *testing.T) {
	claim := promised("team-a", quota.Charge{Slices: 1})
	claim.Containers[0].Resource, claim.Containers[0].Template = "", "slice"
	pod := gpuPod(claim, corev1.Container{Name: "main"})
	native := accounting.NativeQuotasOf(resourceQuota(t, "{hard: {requests.nvidia.com/gpu: 2}}"))
	off := &config.Policy{Quota: config.QuotaSpec{Native: modes.NativeOff}}
	want := []string{"ResourceQuota team-a-gpus counts nvidia.com/gpu, which this pod does not name; Kubernetes counts its claim there if the device " +
		"class has that name, and where the quota is full the pod waits"}
	if diff := cmp.Diff(want, accounting.NativeWarnings(off, pod, native, claim)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestUnits(t *testing.T) {
	t.Run("what was requested and what is carried both count", func(t *testing.T) {
		labelled := promised("team-a", quota.Charge{Slices: 1})
		labelled.Request.Explicit, labelled.Request.Containers[0].Resource = true, ""
		sidecar := asksFor("side", api.ResourceGPU, "1")
		sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		initial := gpuPod(nil, asksFor("main", api.ResourceGPU, "2"))
		initial.Spec.InitContainers = []corev1.Container{sidecar,
			asksFor("first", api.ResourceGPU, "3"), asksFor("mig", "nvidia.com/mig-1g.10gb", "1")}
		for name, c := range map[string]struct {
			pod  *corev1.Pod
			want map[string]int64
		}{
			"renamed: both names": {gpuPod(promised("team-a", quota.Charge{Slices: 1}), asksFor("main", nvidia.SharedGPU, "1")),
				map[string]int64{api.ResourceGPU: 1, nvidia.SharedGPU: 1}},
			"not renamed: its own": {gpuPod(nil, asksFor("main", api.ResourceGPU, "2")), map[string]int64{api.ResourceGPU: 2}},
			"a label alone asks for nvidia.com/gpu": {gpuPod(labelled, asksFor("main", nvidia.SharedGPU, "1")),
				map[string]int64{api.ResourceGPU: 1, nvidia.SharedGPU: 1}},
			"what others add counts beside it": {gpuPod(promised("team-a", quota.Charge{Slices: 1}),
				asksFor("main", nvidia.SharedGPU, "1"), asksFor("late", api.ResourceGPU, "1")),
				map[string]int64{api.ResourceGPU: 2, nvidia.SharedGPU: 1}},
			"init containers by Kubernetes' arithmetic": {initial, map[string]int64{api.ResourceGPU: 4, "nvidia.com/mig-1g.10gb": 1}},
			"a container named like ours": {gpuPod(nil, asksFor("gpuslice-x", api.ResourceGPU, "1")),
				map[string]int64{api.ResourceGPU: 1}},
			"no GPU": {gpuPod(nil, corev1.Container{Name: "main"}), nil},
			"none of a resource is not listed": {gpuPod(nil, asksFor("main", api.ResourceGPU, "1"), asksFor("none", nvidia.SharedGPU, "0")),
				map[string]int64{api.ResourceGPU: 1}},
		} {
			t.Run(name, func(t *testing.T) {
				h, _ := accounting.HoldingOf(testKeys(), c.pod, quotaPools())
				if diff := cmp.Diff(c.want, h.Units); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	})
	// Beyond the bound they count for every quota.
	t.Run("invented resources neither grow a holding nor hide in it", func(t *testing.T) {
		var sum quota.Holding
		for n := range 10 * quota.MaxUnits {
			h, _ := accounting.HoldingOf(promise.Keys{}, gpuPod(nil, asksFor("main", fmt.Sprintf("nvidia.com/mig-%dg.10gb", n), "1")), nil)
			sum = sum.Plus(h)
		}
		last := quota.Scope{Resource: fmt.Sprintf("nvidia.com/mig-%dg.10gb", 10*quota.MaxUnits-1)}
		if len(sum.Units) > quota.MaxUnits+1 || sum.In(last).GPUs < 1 || !sum.Sound() {
			t.Errorf("%d names, the last counts %d", len(sum.Units), sum.In(last).GPUs)
		}
	})
	// What it says was requested can only add, and only what a quota could name.
	t.Run("a forged promise removes nothing", func(t *testing.T) {
		long := nvidia.ResourcePrefix + strings.Repeat("x", 64)
		longest := long[:len(long)-1]
		for name, c := range map[string]struct {
			resource string
			units    int64
			want     map[string]int64
		}{
			"less than nothing":       {nvidia.SharedGPU, -5, map[string]int64{nvidia.SharedGPU: 1}},
			"nothing":                 {api.ResourceGPU, 0, map[string]int64{nvidia.SharedGPU: 1}},
			"more than sums can hold": {api.ResourceGPU, 1<<63 - 1, map[string]int64{api.ResourceGPU: quantity.MaxCharge, nvidia.SharedGPU: 1}},
			"the longest name":        {longest, 1, map[string]int64{nvidia.SharedGPU: 1, longest: 1}},
			"a name of great length":  {long, 1, map[string]int64{nvidia.SharedGPU: 1}},
			"another vendor's":        {"amd.com/gpu", 1, map[string]int64{nvidia.SharedGPU: 1}},
		} {
			forged := promised("team-a", quota.Charge{Slices: 1})
			forged.Request.Containers = []api.ContainerRequest{{Name: "main", Resource: c.resource, GPUs: c.units}}
			forged.Containers = nil
			pod := gpuPod(nil, asksFor("main", nvidia.SharedGPU, "1"))
			pod.Annotations = map[string]string{api.AnnotationPromise: forged.Encode()}
			h, promised := accounting.HoldingOf(testKeys(), pod, quotaPools())
			if diff := cmp.Diff(c.want, h.Units); diff != "" || promised || !h.Plus(h).Sound() {
				t.Errorf("%s: promised %t (-want +got)\n%s", name, promised, diff)
			}
		}
	})
}
