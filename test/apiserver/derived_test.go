package apiserver

import (
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/cluster"
)

// derivedLists are the gates with which a request may derive attributes of its devices, also lists.
const derivedLists = "DRADerivedAttributes=true,DRAListTypeAttributes=true"

// twoGPUs is a template of gpuslice's with two shares, which have to be of GPUs with different UUIDs.
const twoGPUs = "gpuslice-2x4396mi"

// derive has the request of a template derive the UUIDs that have to differ.
func derive(template *resourcev1.ResourceClaimTemplate, expression string) {
	template.Spec.Spec.Devices.Requests[0].Exactly.DerivedAttributes = []resourcev1.DeviceDerivedAttribute{
		{Name: "gpu.nvidia.com/uuid", Expression: expression}}
}

// nothing derives a list without elements, which differs from itself: it has no element in common with any.
const nothing = "['a'].filter(x, false)"

func needDerivedAttributes(t *testing.T) {
	t.Helper()
	cluster.Need(t)
	if !cluster.Wanted("newest") {
		t.Skip("derived attributes came with Kubernetes 1.37: set GPUSLICE_TEST=apiserver,newest to run it")
	}
}

// TestDerivedAttributes has a tenant write a template of two GPUs that derives what has to differ.
func TestDerivedAttributes(t *testing.T) {
	needDerivedAttributes(t)
	s := closed(t, cluster.Options{Gates: derivedLists})
	for name, expression := range map[string]string{
		"nothing to compare":       nothing,
		"another attribute":        "device.attributes['gpu.nvidia.com'].productName",
		"what it is without these": "device.attributes['gpu.nvidia.com'].uuid",
	} {
		template := ours(t, twoGPUs, twoGPUs)
		if err := s.try(t.Context(), template, governedNamespace); err != nil {
			t.Fatalf("the template as it is: %v", err)
		}
		derive(template, expression)
		if err := s.try(t.Context(), template, ignoredNamespace); err != nil {
			t.Errorf("%s where gpuslice leaves all alone: %v", name, err)
		}
		err := s.try(t.Context(), template, governedNamespace)
		if !deniedClaim(err) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		abuse.Report(t, abuse.Attempt{Threat: "A35", Attack: "a template of two GPUs whose UUIDs are derived: " + name,
			Outcome: abuse.Denied, Words: err.Error()})
	}
}

// TestDerivedAttributesRepeat shows why such templates are denied: the scheduler gives a pod one GPU twice.
func TestDerivedAttributesRepeat(t *testing.T) {
	needDerivedAttributes(t)
	s := scheduling(t, cluster.Options{Gates: derivedLists})
	template := ours(t, twoGPUs, twoGPUs)
	s.makeTemplate(t, template)
	two := s.awaitAllocated(t, s.claimBy(t, "two", "", twoGPUs))
	if slices.Sort(two); len(slices.Compact(two)) != 2 {
		t.Fatalf("the template as it is takes %v", two)
	}
	template = ours(t, twoGPUs, "derived")
	derive(template, nothing)
	s.makeTemplate(t, template)
	if got := s.awaitAllocated(t, s.claimBy(t, "one", "", "derived")); len(got) != 2 || got[0] != got[1] {
		t.Errorf("a template that derives nothing to compare takes %v: deploy/58-claims.yaml denies what Kubernetes does no more", got)
	}
}
