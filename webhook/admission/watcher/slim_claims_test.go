package watcher

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubetypes "k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/boundedtest"
)

// claimSpecs are the largest specs that the API server takes, by what they are full of.
func claimSpecs() map[string]func() resourcev1.ResourceClaimSpec {
	requests := func(n int, of func(name string) resourcev1.DeviceRequest) (s resourcev1.ResourceClaimSpec) {
		for i := range n {
			s.Devices.Requests = append(s.Devices.Requests, of(fmt.Sprint("r", i)))
		}
		return s
	}
	exactly := func(change func(*resourcev1.ExactDeviceRequest)) func() resourcev1.ResourceClaimSpec {
		return func() resourcev1.ResourceClaimSpec {
			return requests(32, func(name string) resourcev1.DeviceRequest {
				e := resourcev1.ExactDeviceRequest{DeviceClassName: strings.Clone("nic.example.com"),
					AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}
				change(&e)
				return resourcev1.DeviceRequest{Name: name, Exactly: &e}
			})
		}
	}
	subrequests := func(class func(i, k int) string) func() resourcev1.ResourceClaimSpec {
		return func() resourcev1.ResourceClaimSpec {
			i := 0
			return requests(32, func(name string) (r resourcev1.DeviceRequest) {
				i++
				r.Name = name
				for k := range 8 {
					r.FirstAvailable = append(r.FirstAvailable, resourcev1.DeviceSubRequest{Name: fmt.Sprint("s", k), DeviceClassName: class(i, k),
						AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1})
				}
				return r
			})
		}
	}
	return map[string]func() resourcev1.ResourceClaimSpec{
		"selectors": func() resourcev1.ResourceClaimSpec {
			return requests(4, func(name string) resourcev1.DeviceRequest {
				e := resourcev1.ExactDeviceRequest{DeviceClassName: strings.Clone("nic.example.com"),
					AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}
				for range 32 {
					e.Selectors = append(e.Selectors,
						resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: "true" + strings.Repeat(" ", 10<<10-4)}})
				}
				return resourcev1.DeviceRequest{Name: name, Exactly: &e}
			})
		},
		"tolerations": exactly(func(e *resourcev1.ExactDeviceRequest) {
			for _, text := range boundedtest.Texts(16, 300) {
				e.Tolerations = append(e.Tolerations, resourcev1.DeviceToleration{Key: text, Operator: resourcev1.DeviceTolerationOpExists})
			}
		}),
		"capacities": exactly(func(e *resourcev1.ExactDeviceRequest) {
			e.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{}}
			for _, text := range boundedtest.Texts(400, 96) {
				e.Capacity.Requests[resourcev1.QualifiedName(text)] = resource.MustParse("1Gi")
			}
		}),
		"constraints": func() resourcev1.ResourceClaimSpec {
			s := exactly(func(*resourcev1.ExactDeviceRequest) {})()
			for range 32 {
				s.Devices.Constraints = append(s.Devices.Constraints, resourcev1.DeviceConstraint{Requests: boundedtest.Texts(32, 127),
					MatchAttribute: new(resourcev1.FullyQualifiedName(strings.Repeat("a", 300)))})
			}
			return s
		},
		"configurations": func() resourcev1.ResourceClaimSpec {
			s := exactly(func(*resourcev1.ExactDeviceRequest) {})()
			for range 32 {
				s.Devices.Config = append(s.Devices.Config,
					resourcev1.DeviceClaimConfiguration{DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{
						Driver: "nic.example.com", Parameters: kubetypes.RawExtension{Raw: []byte(strings.Repeat("x", 10<<10))}}}})
			}
			return s
		},
		"short alternatives": subrequests(func(int, int) string { return strings.Clone("n") }),
		"long classes":       subrequests(func(i, k int) string { return fmt.Sprintf("%0250d", 8*i+k) }),
	}
}

func TestSlimClaimsAreSmall(t *testing.T) {
	for name, spec := range claimSpecs() {
		claim := boundedtest.KeptOf(t, slimClaim, func(i int) kubetypes.Object {
			return &resourcev1.ResourceClaim{ObjectMeta: boundedtest.Meta(i, 700<<10), Spec: spec()}
		})
		template := boundedtest.KeptOf(t, slimClaim, func(i int) kubetypes.Object {
			return &resourcev1.ResourceClaimTemplate{ObjectMeta: boundedtest.Meta(i, 300<<10),
				Spec: resourcev1.ResourceClaimTemplateSpec{ObjectMeta: boundedtest.Meta(i, 300<<10), Spec: spec()}}
		})
		if most := 16 << 10; claim > most || template > most {
			t.Errorf("full of %s: %d bytes are kept of a claim, and %d of a template", name, claim, template)
		}
	}
}

// TestSlimClaimsCount: what is kept counts as many devices as the whole, or more.
func TestSlimClaimsCount(t *testing.T) {
	in := policies.Input{Policy: &config.Policy{}, DeviceClasses: map[string]*resourcev1.DeviceClass{
		"nic.example.com": {Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "nic.example.com"`}}},
		}},
	}}
	claimed := func(spec resourcev1.ResourceClaimSpec) []string {
		in := in
		in.Pod = &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: new("x")}}}}
		in.Claims = map[string]*resourcev1.ResourceClaimSpec{"c": &spec}
		return in.GPUClaims().Claimed(nil)
	}
	for name, spec := range claimSpecs() {
		whole, small := claimed(spec()), claimed(slimSpec(spec()))
		tooLarge := []string{`claim "c" takes devices of class ` + classTooLarge}
		switch {
		case name == "short alternatives" || name == "long classes":
			if !slices.Equal(small, tooLarge) {
				t.Errorf("%s: %q", name, small)
			}
		case !slices.Equal(whole, small):
			t.Errorf("%s: %q, want %q", name, small, whole)
		}
	}
	for _, class := range []string{"gpu.nvidia.com", "nic.example.com"} {
		spec := claimSpecs()["selectors"]()
		spec.Devices.Requests[3].Exactly.DeviceClassName = class
		if got := len(claimed(slimSpec(spec))) > 0; got != (class == "gpu.nvidia.com") {
			t.Errorf("class %s is a GPU's: %t", class, got)
		}
	}
}

// TestSlimClaimsAreNoSlices: a spec that is too large never passes for a slice of gpuslice's, and one of gpuslice's stays what it is.
func TestSlimClaimsAreNoSlices(t *testing.T) {
	pod := &corev1.Pod{}
	names := []string{"gpuslice-4396mi", "gpuslice-1g.10gb-or-4396mi",
		"gpuslice-99x99999999mi-of-99999999mi-share-from-" + strings.Repeat("c", 200) + ".example.com"}
	for _, name := range names {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{ResourceClaimTemplateName: &name})
	}
	ours := claims.Named(pod)
	if len(ours) == 0 {
		t.Fatal("no template")
	}
	for _, template := range ours {
		before, _ := json.Marshal(template.Spec.Spec)
		kept, _ := slimClaim(template.DeepCopy())
		small := kept.(*resourcev1.ResourceClaimTemplate)
		if after, _ := json.Marshal(small.Spec.Spec); string(after) != string(before) || !maps.Equal(small.Labels, template.Labels) {
			t.Errorf("%s became %s", template.Name, after)
		}
		in := policies.Input{Policy: &config.Policy{}}
		if problem := in.GPUClaims().ClaimProblem(template.Name, &small.Spec.Spec); problem != "" {
			t.Errorf("%s %s", template.Name, problem)
		}
		for what, change := range map[string]func(*resourcev1.DeviceClaim){
			"selectors": func(d *resourcev1.DeviceClaim) {
				d.Constraints = append(d.Constraints, resourcev1.DeviceConstraint{Requests: boundedtest.Texts(100, 100)})
			},
			"configuration": func(d *resourcev1.DeviceClaim) {
				d.Config = append(d.Config, resourcev1.DeviceClaimConfiguration{Requests: boundedtest.Texts(100, 100)})
			},
			"requests": func(d *resourcev1.DeviceClaim) { d.Requests[0].Name = strings.Repeat("r", 4<<10) },
		} {
			spec := template.DeepCopy().Spec.Spec
			change(&spec.Devices)
			small := slimSpec(spec)
			if in.GPUClaims().ClaimProblem(template.Name, &small) == "" {
				t.Errorf("%s with more %s passes for a slice", template.Name, what)
			}
		}
	}
}
