package policies_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/abuse"
)

func deviceClass(extended, expression string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{}
	if extended != "" {
		c.Spec.ExtendedResourceName = &extended
	}
	if expression != "" {
		c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	}
	return c
}

// claimSpec claims so many devices of each class; the second and later ones are alternatives of one request.
func claimSpec(requests ...resourcev1.DeviceRequest) *resourcev1.ResourceClaimSpec {
	return &resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}}
}

func exactly(class string, count int64) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, Count: count}}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	classes := map[string]*resourcev1.DeviceClass{
		"gpu.nvidia.com": deviceClass("nvidia.com/gpu", "device.driver == 'gpu.nvidia.com'"),
		"a100":           deviceClass("acme.example/gpu", "device.driver == 'gpu.nvidia.com' && true"),
		"listed":         deviceClass("", "device.driver == 'acme.example'"),
		"anything":       deviceClass("", ""),
		"nic":            deviceClass("acme.example/nic", "device.driver == 'nic.example'"),
		"imex":           deviceClass("", "device.driver == 'compute-domain.nvidia.com'"),
		"memory":         deviceClass("", "device.driver == 'memory.example'"),
		"also-memory":    deviceClass("", `device.driver=="memory.example" && device.attributes["memory.example"].type != "x"`),
	}
	all := resourcev1.DeviceRequest{
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "a100", AllocationMode: resourcev1.DeviceAllocationModeAll},
	}
	admin := resourcev1.DeviceRequest{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "a100", Count: 1, AdminAccess: new(true)}}
	either := resourcev1.DeviceRequest{FirstAvailable: []resourcev1.DeviceSubRequest{{DeviceClassName: "nic", Count: 9},
		{DeviceClassName: "a100", Count: 2}}}
	claim := func(spec *resourcev1.ResourceClaimSpec) func(*policies.Input) {
		return func(in *policies.Input) {
			in.Pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}}
			if in.Claims = nil; spec != nil {
				in.Claims = map[string]*resourcev1.ResourceClaimSpec{"c": spec}
			}
		}
	}
	extended := func(name, n string) func(*policies.Input) {
		return func(in *policies.Input) {
			in.Pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(n)}
		}
	}
	for name, tt := range map[string]struct {
		edit func(*policies.Input)
		gpus int64
	}{
		"NVIDIA's class":                  {claim(claimSpec(exactly("gpu.nvidia.com", 1))), 1},
		"several requests":                {claim(claimSpec(exactly("gpu.nvidia.com", 2), exactly("a100", 1), exactly("nic", 4))), 3},
		"all of a node":                   {claim(claimSpec(all)), 32},
		"an administrator's look":         {claim(claimSpec(admin)), 0},
		"alternatives":                    {claim(claimSpec(either)), 2},
		"a class that policy lists":       {claim(claimSpec(exactly("listed", 1))), 1},
		"a class of any device":           {claim(claimSpec(exactly("anything", 1))), 1},
		"a class of a pool":               {claim(claimSpec(exactly("memory", 4))), 4},
		"another class of its driver":     {claim(claimSpec(exactly("also-memory", 2))), 2},
		"a class that is not there":       {claim(claimSpec(exactly("later", 1))), 1},
		"a claim that is not there":       {claim(nil), 32},
		"another device":                  {claim(claimSpec(exactly("nic", 1))), 0},
		"channels of a compute domain":    {claim(claimSpec(exactly("imex", 1))), 0},
		"by the class's name":             {extended("deviceclass.resource.kubernetes.io/a100", "3"), 3},
		"by the class's resource":         {extended("acme.example/gpu", "1"), 1},
		"by a resource of another device": {extended("acme.example/nic", "1"), 0},
		"by NVIDIA's own resource":        {extended("nvidia.com/gpu", "1"), 0}, // counted as ever
	} {
		in, pod := brought(t, "")
		in.Policy.Mode, in.Policy.DeviceClasses = modes.OptIn, []string{"listed"}
		in.DeviceClasses = classes
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		pod.Labels, in.Pod = nil, pod
		in.Pools = append(in.Pools, pools.Pool{Name: "memory", Strategy: "claim", DeviceClass: "memory", DeviceDriver: "memory.example"})
		tt.edit(&in)
		h := in.GPUClaims().Holding(quota.Holding{Namespace: "team-a"}, nil)
		if h.Charge.GPUs != tt.gpus || h.Charge.Slices != tt.gpus || h.MemoryUnknown != (tt.gpus > 0) || (len(h.Pools) > 0) != (tt.gpus > 0) {
			t.Errorf("%s: holds %+v, want %d GPUs", name, h, tt.gpus)
		}
		in.Policy.Claims = modes.ClaimsDeny
		if d := policies.Decide(in); (d.Outcome == policies.Denied) != (tt.gpus > 0) ||
			tt.gpus > 0 && !strings.Contains(d.Message(), "GPUs by a claim") {
			t.Errorf("%s: %s %s", name, d.Outcome, d.Message())
		}
	}
}

func TestClosedClasses(t *testing.T) {
	t.Parallel()
	nic := deviceClass("", "device.driver == 'nic.example'")
	own := deviceClass("", "device.driver == 'memory.example'")
	for name, tt := range map[string]struct {
		classes map[string]*resourcev1.DeviceClass
		edit    func(*policies.Input)
		want    string
	}{
		"denied": {map[string]*resourcev1.DeviceClass{"nic": nic, "own": own},
			func(in *policies.Input) { in.Policy.DeviceClasses = []string{"own"} }, "gpu.nvidia.com,mig.nvidia.com,own"},
		"of a pool": {map[string]*resourcev1.DeviceClass{"nic": nic, "own": own},
			func(in *policies.Input) { in.Pools = []pools.Pool{{DeviceDriver: "memory.example"}} }, "gpu.nvidia.com,mig.nvidia.com,own"},
		"counted": {map[string]*resourcev1.DeviceClass{"gpu.nvidia.com": own},
			func(in *policies.Input) { in.Policy.Claims = modes.ClaimsCount }, ""},
		"nothing is denied": {map[string]*resourcev1.DeviceClass{"gpu.nvidia.com": own},
			func(in *policies.Input) { in.Policy.EnforcementMode = api.EnforceAudit }, ""},
		"warned about": {map[string]*resourcev1.DeviceClass{"gpu.nvidia.com": own},
			func(in *policies.Input) { in.Policy.EnforcementMode = api.EnforceWarn }, ""},
		"off": {map[string]*resourcev1.DeviceClass{"gpu.nvidia.com": own},
			func(in *policies.Input) { in.Policy.Mode = modes.Off }, ""},
		"ungoverned": {map[string]*resourcev1.DeviceClass{"gpu.nvidia.com": own},
			func(in *policies.Input) { in.Policy = nil }, ""},
		"a cluster without classes": {map[string]*resourcev1.DeviceClass{"nic": nic}, func(*policies.Input) {}, ""},
		"too many":                  {many(400), func(*policies.Input) {}, "*"},
		"counted, and open for claims in outages": {map[string]*resourcev1.DeviceClass{"gpu.nvidia.com": own}, func(in *policies.Input) {
			in.Policy.Claims, in.Namespace.Labels = modes.ClaimsCount, map[string]string{api.LabelFail: api.FailOpenForClaims}
		}, "gpu.nvidia.com,mig.nvidia.com"},
		"warned about, and open for claims in outages": {map[string]*resourcev1.DeviceClass{"gpu.nvidia.com": own}, func(in *policies.Input) {
			in.Policy.EnforcementMode, in.Namespace.Labels = api.EnforceWarn, map[string]string{api.LabelFail: api.FailOpenForClaims}
		}, "gpu.nvidia.com,mig.nvidia.com"},
		"counted, and open in outages": {map[string]*resourcev1.DeviceClass{"gpu.nvidia.com": own}, func(in *policies.Input) {
			in.Policy.Claims, in.Namespace.Labels = modes.ClaimsCount, map[string]string{api.LabelFail: api.FailOpen}
		}, ""},
		"off, and open for claims in outages": {map[string]*resourcev1.DeviceClass{"gpu.nvidia.com": own}, func(in *policies.Input) {
			in.Policy.Mode, in.Namespace.Labels = modes.Off, map[string]string{api.LabelFail: api.FailOpenForClaims}
		}, ""},
	} {
		in := claimInput(t)
		in.Policy.Claims, in.Policy.EnforcementMode, in.Pools, in.DeviceClasses = modes.ClaimsDeny, api.EnforceFull, nil, tt.classes
		tt.edit(&in)
		if got := in.GPUClaims().Closed(in.Namespace); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// many are classes of any device.
func many(n int) map[string]*resourcev1.DeviceClass {
	out := map[string]*resourcev1.DeviceClass{}
	for i := range n {
		out[fmt.Sprintf("class-%d.of.a.rather.long.name.example.com", i)] = deviceClass("", "")
	}
	return out
}

// TestAnotherPodsClaim has a pod name the claim that Kubernetes made for another's slice.
func TestQuotaDenialOfUnknownClaim(t *testing.T) {
	t.Parallel()
	full := []quota.Excess{{Quota: "team-a", Dimension: "gpus", Requested: "1", Used: "0", Limited: "0"}}
	for name, tt := range map[string]struct {
		claim corev1.PodResourceClaim
		known bool
		want  string
	}{
		"a template": {corev1.PodResourceClaim{Name: "nic", ResourceClaimTemplateName: new("nowhere")},
			false, `; claim "nic" counts as GPUs, because its template "nowhere" is not found: create that first`},
		"a claim": {corev1.PodResourceClaim{Name: "nic", ResourceClaimName: new("nowhere")},
			false, `because its ResourceClaim "nowhere" is not found`},
		"one that is there":   {corev1.PodResourceClaim{Name: "nic", ResourceClaimTemplateName: new("there")}, true, ""},
		"one of gpuslice":     {corev1.PodResourceClaim{Name: "gpuslice-main", ResourceClaimTemplateName: new("gpuslice-4096mi")}, false, ""},
		"one that names none": {corev1.PodResourceClaim{Name: "nic"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := claimInput(t)
			in.Pod.Spec.ResourceClaims = []corev1.PodResourceClaim{tt.claim}
			in.Claims = nil
			if tt.known {
				in.Claims = map[string]*resourcev1.ResourceClaimSpec{"nic": claimSpec()}
			}
			message := policies.DenyQuota(in, full).Message()
			if !strings.Contains(message, "exceeded quota: team-a, requested: gpus=1") ||
				strings.Contains(message, "counts as GPUs") != (tt.want != "") || !strings.Contains(message, tt.want) {
				t.Errorf("%s, want %q", message, tt.want)
			}
		})
	}
}

func TestAnotherPodsClaim(t *testing.T) {
	t.Parallel()
	name := "gpuslice-4396mi"
	theirs := &corev1.Pod{
		Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpuslice", ResourceClaimTemplateName: &name}}},
	}
	slice := claims.Named(theirs)[0].Spec.Spec
	for claim, denied := range map[string]bool{"slice": true, "whole": false} {
		in := claimInput(t)
		in.Pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: new("theirs")}}
		in.Claims = map[string]*resourcev1.ResourceClaimSpec{"c": claimSpec(exactly("gpu.nvidia.com", 1))}
		if denied {
			in.Claims["c"] = &slice
		}
		d := policies.Decide(in)
		if got := d.IfEnforced == policies.Denied; got != denied || denied && !strings.Contains(d.Message(), "no pods share one") {
			t.Errorf("%s: %s: %s", claim, d.IfEnforced, d.Message())
		}
		if denied {
			abuse.Report(t, abuse.Attempt{Threat: "A35", Attack: "a pod that names another pod's claim", Outcome: abuse.Denied, Words: d.Message()})
		}
	}
}

// TestGroupedClaims has another webhook put a pod with a slice by a claim into a PodGroup.
func TestGroupedClaims(t *testing.T) {
	t.Parallel()
	in := instanceOrShare(t)
	given := policies.Decide(in).Promise
	in.Pod = podedit.Apply(given, in.Pod)
	in.Pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("group")}
	d := policies.Verify(in, given)
	if d.Outcome != policies.Denied || !strings.Contains(d.Message(), "spec.schedulingGroup is set") {
		t.Errorf("%s: %s", d.Outcome, d.Message())
	}
	abuse.Report(t,
		abuse.Attempt{Threat: "A35", Attack: "a pod of a PodGroup whose slice is a claim", Outcome: abuse.Denied, Words: d.Message()})
}

// TestClaimsOfGroups has pods of a PodGroup claim GPUs where a policy has them counted.
func TestClaimsOfGroups(t *testing.T) {
	t.Parallel()
	claimed := func(class string) func(*policies.Input) {
		return func(in *policies.Input) {
			in.Pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimTemplateName: new("mine")}}
			in.Claims = map[string]*resourcev1.ResourceClaimSpec{"c": claimSpec(exactly(class, 1))}
		}
	}
	named := func(in *policies.Input) { // Kubernetes makes the claim for this pod alone
		in.Pod.Spec.Containers[0].Resources.Limits =
			corev1.ResourceList{"deviceclass.resource.kubernetes.io/gpu.nvidia.com": resource.MustParse("1")}
	}
	const limited, unlimited = "quota: {gpus: 4}\n", ""
	for name, tt := range map[string]struct {
		quota   string
		edit    func(*policies.Input)
		grouped bool
		denied  bool
	}{
		"a claim":                {limited, claimed("gpu.nvidia.com"), true, true},
		"slices are claims":      {"strategies: [claim]\n", claimed("gpu.nvidia.com"), true, true},
		"no quota":               {unlimited, claimed("gpu.nvidia.com"), true, false},
		"no group":               {limited, claimed("gpu.nvidia.com"), false, false},
		"a claim of a NIC":       {limited, claimed("nic"), true, false},
		"the name of the device": {limited, named, true, false},
	} {
		in := claimInput(t)
		p, problems := config.Parse("sys/default", []byte("apiVersion: gpuslice.dev/v1\nmode: opt-in\nclaims: count\n"+tt.quota))
		if len(problems) > 0 {
			t.Fatal(problems.ToAggregate())
		}
		in.Policy = p
		in.DeviceClasses = map[string]*resourcev1.DeviceClass{"nic": deviceClass("", "device.driver == 'nic.example'")}
		tt.edit(&in)
		if tt.grouped {
			in.Pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("group")}
		}
		d := policies.Decide(in)
		if (d.Outcome == policies.Denied) != tt.denied || tt.denied && !strings.Contains(d.Message(), "GPUs by a claim of a PodGroup") {
			t.Errorf("%s: %s %s", name, d.Outcome, d.Message())
		}
		if tt.denied {
			abuse.Report(t, abuse.Attempt{Threat: "A33", Attack: "a PodGroup that keeps devices without a pod: " + name,
				Outcome: abuse.Denied, Words: d.Message()})
		}
	}
}

// TestAnotherClaimForOwn has a pod whose slice is a claim, and which got another one in place of it.
func TestAnotherClaimForOwn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		made bool
		spec *resourcev1.ResourceClaimSpec
		gpus int64
	}{
		"all devices of a node": {true, claimSpec(resourcev1.DeviceRequest{Name: "gpu",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeAll}}), 32},
		"two devices":             {true, claimSpec(exactly("gpu.nvidia.com", 2)), 2},
		"its own":                 {true, nil, 0},
		"not read":                {true, &resourcev1.ResourceClaimSpec{}, 0},
		"a template not yet anew": {false, claimSpec(exactly("gpu.nvidia.com", 2)), 0},
	} {
		in := instanceOrShare(t)
		given := policies.Decide(in).Promise
		in.Pod = podedit.Apply(given, in.Pod)
		claim := given.Containers[0].Claim
		if tt.made {
			in.Pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: claim, ResourceClaimName: new("made")}}
		}
		before := accounting.Holding(given, in.Pod)
		in.Claims = map[string]*resourcev1.ResourceClaimSpec{claim: tt.spec}
		switch name {
		case "its own":
			in.Claims[claim] = &claims.Named(in.Pod)[0].Spec.Spec
		case "not read":
			in.Claims = nil
		}
		h := in.GPUClaims().Holding(before, given)
		if got := h.Charge.GPUs - before.Charge.GPUs; got != tt.gpus || (len(in.GPUClaims().Claimed(given)) > 0) != (tt.gpus > 0) {
			t.Errorf("%s: charged %d GPUs more (%q), want %d", name, got, in.GPUClaims().Claimed(given), tt.gpus)
		}
		if tt.gpus > 0 {
			abuse.Report(t,
				abuse.Attempt{Threat: "A35", Attack: "a claim of the tenant's in place of the pod's own: " + name, Outcome: abuse.Contained,
					Words: "quotas charge what it takes", Held: fmt.Sprintf("%d GPUs, charged", tt.gpus)})
		}
	}
}

func TestClaimProblem(t *testing.T) {
	t.Parallel()
	name := "gpuslice-4396mi"
	pod := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpuslice", ResourceClaimTemplateName: &name}}}}
	slice := &claims.Named(pod)[0].Spec.Spec
	in := claimInput(t)
	in.DeviceClasses = map[string]*resourcev1.DeviceClass{"nic": deviceClass("acme.example/nic", "device.driver == 'nic.example'")}
	for _, tt := range []struct {
		template string
		spec     *resourcev1.ResourceClaimSpec
		want     string
	}{
		{name, slice, ""},
		{"", slice, ""},
		{"mine", slice, ""},
		{"gpuslice-1mi", slice, "something else than its name"},
		{name, claimSpec(exactly("gpu.nvidia.com", 1)), "something else than its name"},
		{"mine", claimSpec(exactly("gpu.nvidia.com", 1)), "class gpu.nvidia.com, which no slice bounds"},
		{"", claimSpec(exactly("nic", 1)), ""},
	} {
		if got := in.GPUClaims().ClaimProblem(tt.template, tt.spec); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.template, got, tt.want)
		}
	}
}

// claimInput is a pod without a GPU and without labels, in a governed namespace.
func claimInput(t *testing.T) policies.Input {
	in, pod := brought(t, "")
	in.Policy.Mode = modes.OptIn
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	pod.Labels, in.Pod = nil, pod
	return in
}
