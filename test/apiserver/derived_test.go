package apiserver

import (
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/cluster"
)

// TestDerivedAttributes has a tenant write a template of two GPUs, which have to differ in their UUIDs, that derives these UUIDs.
func TestDerivedAttributes(t *testing.T) {
	cluster.Need(t)
	if !cluster.Wanted("newest") {
		t.Skip("derived attributes came with Kubernetes 1.37: set GPUSLICE_TEST=apiserver,newest to run it")
	}
	s := closed(t, cluster.Options{Gates: "DRADerivedAttributes=true,DRAListTypeAttributes=true"})
	const two = "gpuslice-2x4396mi"
	for name, expression := range map[string]string{
		"nothing to compare":       "['a'].filter(x, false)",
		"another attribute":        "device.attributes['gpu.nvidia.com'].productName",
		"what it is without these": "device.attributes['gpu.nvidia.com'].uuid",
	} {
		template := ours(t, two, two)
		if err := s.try(t.Context(), template, governedNamespace); err != nil {
			t.Fatalf("the template as it is: %v", err)
		}
		template.Spec.Spec.Devices.Requests[0].Exactly.DerivedAttributes = []resourcev1.DeviceDerivedAttribute{
			{Name: "gpu.nvidia.com/uuid", Expression: expression}}
		if err := s.try(t.Context(), template, ignoredNamespace); err != nil {
			t.Errorf("%s where gpuslice leaves all alone: %v", name, err)
		}
		err := s.try(t.Context(), template, governedNamespace)
		if !deniedClaim(err) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Contains(err.Error(), "this one matches") {
			t.Errorf("%s: a name is proposed, and it is the one that the template has: %v", name, err)
		}
		abuse.Report(t, abuse.Attempt{Threat: "A35", Attack: "a template of two GPUs whose UUIDs are derived: " + name,
			Outcome: abuse.Denied, Words: err.Error()})
	}
}
