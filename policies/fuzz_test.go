package policies_test

import (
	"encoding/json"
	"reflect"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

func FuzzParseMemory(f *testing.F) {
	for _, seed := range []string{"8Gi", "9728Mi", "1e400", "1e10000000", "-1", "", "８Gi", "0",
		"1Pi", "0.5Gi", "999999999999999Ti", "8GB", " 8Gi"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := quantity.ParseMemory(text)
		if err != nil {
			return
		}
		again, err := quantity.ParseMemory(m.String())
		if err != nil || again != m {
			t.Errorf("%q is %d MiB, printed %q, read again %d (%v)", text, m, m, again, err)
		}
	})
}

func FuzzParseFraction(f *testing.F) {
	for _, seed := range []string{"0.25", "25pct", "0", "1", "1.0000001", "NaN", "0.334", "1e-1",
		".5", "33.333pct", "+0.5", "０.5", "0.0000001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fraction, err := quantity.ParseFraction(text)
		if err != nil {
			return
		}
		if fraction.Num <= 0 || fraction.Num > fraction.Den {
			t.Fatalf("%q is %d/%d", text, fraction.Num, fraction.Den)
		}
		printed, _ := fraction.MarshalText()
		again, err := quantity.ParseFraction(string(printed))
		if err != nil || again != fraction {
			t.Errorf("%q is %v, printed %q, read again %v (%v)", text, fraction, printed, again, err)
		}
	})
}

func FuzzReadPod(f *testing.F) {
	f.Add([]byte(`{"spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":"1e10000000"}}}]}}`))
	f.Add([]byte(`{"metadata":{"labels":{"gpuslice.dev/memory":"8Gi"}},"spec":{"containers":[{"name":"a"}]}}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"spec":{"hostPID":true,"hostPID":null,"containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}],"containers":[{"name":"a\xff"}]}}`))
	f.Add([]byte(`{"metadata":{"creationTimestamp":null,"deletionGracePeriodSeconds":1.0},"spec":{"hostPID":null,"activeDeadlineSeconds":1e1,"containers":[null,{"command":null,"ports":[{"containerPort":1}],"env":[{"name":"A","value":"\ud800"}]}],"nodeSelector":{"a":null},"overhead":{"cpu":1}}}`))
	f.Add([]byte(`{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}]},"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":"a"}},"resources":{"limits":{"cpu":null}}}],"volumes":[{"emptyDir":{}}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		pod, violation, err := rawpod.Decode(raw)
		if err == nil && violation == nil && (pod.Pod == nil || len(pod.Text) == 0) {
			t.Errorf("%q is neither a pod nor denied", raw)
		}
		if pod.Pod != nil {
			podedit.Operations(pod.Text, pod.Pod, new(corev1.Pod)) // what was read can be patched
			checkReadAsServed(t, pod)
		}
	})
}

// checkReadAsServed compares a pod that was read with what the API server reads, whose decoder is sigs.k8s.io/json.
func checkReadAsServed(t *testing.T, pod rawpod.Raw) {
	t.Helper()
	served := new(corev1.Pod)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(pod.Text, served); err != nil {
		t.Errorf("%q is read, and not by the API server: %v", pod.Text, err)
	} else if !reflect.DeepEqual(pod.Pod, served) {
		t.Errorf("%q is read as another pod (-API server +here):\n%s", pod.Text, cmp.Diff(served, pod.Pod))
	}
}

// TestReadAsServed: all pods of the scenarios are read as the API server reads them.
func TestReadAsServed(t *testing.T) {
	t.Parallel()
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for i := range all {
		in, err := all[i].Input()
		if err != nil || in.Pod == nil {
			continue
		}
		text, err := json.Marshal(in.Pod)
		if err != nil {
			t.Fatal(err)
		}
		pod, violation, err := rawpod.Decode(text)
		if err != nil || violation != nil {
			continue
		}
		checkReadAsServed(t, pod)
		if err := jsonv2.Unmarshal(text, new(corev1.Pod)); err != nil {
			t.Errorf("%s is read by the slower decoder: %v", all[i].Name, err)
		}
		read++
	}
	if read < len(all)/2 {
		t.Errorf("%d pods of %d scenarios were read", read, len(all))
	}
}

func FuzzDecodePromise(f *testing.F) {
	f.Add(`{"v":1,"namespace":"a","containers":[{"name":"a","resource":"nvidia.com/gpu.shared","count":1}]}`)
	f.Add(`{"v":2}`)
	f.Add(``)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := promise.Decode(text)
		if err != nil {
			return
		}
		if again, err := promise.Decode(p.Encode()); err != nil || again.Encode() != p.Encode() {
			t.Errorf("printed and read again, %q differs (%v)", text, err)
		}
	})
}

// FuzzDecide feeds hostile labels, annotations, quantities and a forged promise to a whole decision: it never panics,
// and what it rewrites is stable.
func FuzzDecide(f *testing.F) {
	f.Add("8Gi", "", "", "", `{"a":{"memory":"4Gi"}}`, "", "1")
	f.Add("", "0.25", "", "", "",
		`{"v":1,"request":{"containers":[{"name":"a","gpus":9,"size":{"class":"x"}}]},"containers":[{"name":"a","resource":"x"}]}`, "0.25")
	f.Add("1e400", "NaN", "replica", "enabled", "{", "{}", "-1")
	policy := &config.Policy{Name: "fuzz", Mode: modes.Transparent, EnforcementMode: api.EnforceFull,
		Strategies: []api.StrategyName{"mps", "time-slicing", "mig", "exclusive"}, Accept: []string{"fractional-quantity"},
		DefaultSlice: &config.SliceSpec{Memory: 4096}}
	offered := []pools.Pool{
		{Name: "l4", Site: "l4", Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing", DeviceMemory: 23034, Reserve: 692, Replicas: 4},
		{Name: "mig", Site: "mig", Resource: "nvidia.com/mig-1g.10gb", Strategy: "mig", DeviceMemory: 81920,
			InstanceMemory: 9728, MIGProfile: "1g.10gb", Replicas: 1},
	}
	f.Fuzz(func(t *testing.T, memory, fraction, class, share, containers, given, amount string) {
		labels := map[string]string{}
		for name, value := range map[string]string{api.LabelMemory: memory,
			api.LabelFraction: fraction, api.LabelClass: class, api.LabelShare: share} {
			if value != "" {
				labels[name] = value
			}
		}
		annotations := map[string]string{}
		if containers != "" {
			annotations[api.AnnotationContainers] = containers
		}
		if given != "" {
			annotations[api.AnnotationPromise] = given
		}
		b, _ := json.Marshal(map[string]any{
			"metadata": map[string]any{"labels": labels, "annotations": annotations},
			"spec": map[string]any{
				"containers": []any{map[string]any{"name": "a", "resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": amount}}}},
			},
		})
		raw, violation, err := rawpod.Decode(b)
		if err != nil || violation != nil {
			return
		}
		in := policies.Input{Pod: raw.Pod, Namespace: api.Namespace{Name: "n"}, Policy: policy, Pools: offered}
		d := policies.Decide(in)
		if d.Promise == nil {
			return
		}
		once := podedit.Apply(d.Promise, raw.Pod)
		in.Pod = once
		again := policies.Decide(in)
		if again.Promise == nil {
			t.Fatalf("the rewritten pod is %s: %s", again.Outcome, again.Message())
		}
		a, _ := json.Marshal(once)
		b, _ = json.Marshal(podedit.Apply(again.Promise, once))
		if string(a) != string(b) {
			t.Errorf("deciding again changes the pod:\n%s\n%s", a, b)
		}
	})
}

// FuzzTighten holds any tenant's document against any policy: what comes out never allows more, and following the
// document a second time changes nothing.
func FuzzTighten(f *testing.F) {
	const head = "apiVersion: gpuslice.dev/v1\n"
	f.Add(head+"mode: opt-in\nlimits: {perPod: {memory: 8Gi, gpus: 1}}", head+"limits: {perPod: {memory: 9Gi, slices: 2}}\nmode: transparent")
	f.Add(head+"defaultSlice: {fraction: 0.5}\nclasses: {a: {memory: 1Gi, compute: 20}}",
		head+"defaultSlice: {fraction: '0.3333'}\nclasses: {a: {memory: 2Gi}, b: {memory: 1Gi}}")
	f.Add(head+"strategies: [mps]\nquota: {budget: ml, memory: 1Gi}",
		head+"strategies: [mig]\nquota: {memory: 2Gi, classes: {a: {slices: 0}}}\nguard: {enabled: false}")
	f.Add(head+"mode: 'off'\nenv: [{name: A, value: x}]",
		head+"env: [{name: A, value: y}, {name: B, value: z}]\nframeworks: {vllm: {enabled: false}}")
	f.Fuzz(func(t *testing.T, authority, tenant string) {
		a, _ := config.Parse("sys/a", []byte(authority))
		own, _ := config.ParseTenant("team-a/gpuslice-policy", []byte(tenant))
		if a == nil || own == nil {
			return
		}
		got, _ := config.TenantDocument{Policy: own}.Tighten(a)
		for what, pair := range map[string][2]quota.Charge{
			"perContainer": {a.Limits.PerContainer, got.Limits.PerContainer}, "perPod": {a.Limits.PerPod, got.Limits.PerPod},
		} {
			for _, d := range quota.Dimensions() {
				if had, has := d.Amount(pair[0]), d.Amount(pair[1]); had != 0 && (has == 0 || has > had) {
					t.Errorf("limits.%s.%s: %d became %d", what, d.Name, had, has)
				}
			}
		}
		if got.OptOut != a.OptOut || !cmp.Equal(got.Guard, a.Guard) || !cmp.Equal(got.Quota, a.Quota) ||
			!cmp.Equal(got.Pools, a.Pools) || a.Mode == modes.Off && got.Mode != a.Mode {
			t.Error("the tenant wrote what is the authority's")
		}
		again, _ := config.TenantDocument{Policy: own}.Tighten(got)
		again.Name = got.Name
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("followed twice it is not the same:\n%s", diff)
		}
	})
}
