package claims

import (
	"slices"
	"strings"
	"testing"
	"testing/quick"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

var named = map[string]Template{
	"gpuslice-4396mi":                                {Class: "gpu.nvidia.com", Memory: 4396, Count: 1},
	"gpuslice-20480mi-of-81920mi":                    {Class: "gpu.nvidia.com", Memory: 20480, Of: 81920, Count: 1},
	"gpuslice-2x4396mi":                              {Class: "gpu.nvidia.com", Memory: 4396, Count: 2},
	"gpuslice-4396mi-share":                          {Class: "gpu.nvidia.com", Memory: 4396, Count: 1, Share: true},
	"gpuslice-4396mi-from-a.b-from":                  {Class: "a.b-from", Memory: 4396, Count: 1},
	"gpuslice-32x1mi-of-81920mi-share":               {Class: "gpu.nvidia.com", Memory: 1, Of: 81920, Count: 32, Share: true},
	"gpuslice-1mi-of-2mi-share-from-share-from-of-1": {Class: "share-from-of-1", Memory: 1, Of: 2, Count: 1, Share: true},
	"gpuslice-1g.10gb-or-4396mi":                     {Class: "gpu.nvidia.com", Memory: 4396, Count: 1, Preferred: "1g.10gb"},
	"gpuslice-2g.20gb-or-12588mi-share":              {Class: "gpu.nvidia.com", Memory: 12588, Count: 1, Share: true, Preferred: "2g.20gb"},
	"gpuslice-99999999mi":                            {Class: "gpu.nvidia.com", Memory: 99999999, Count: 1},
}

func TestName(t *testing.T) {
	for name, want := range named {
		if got := want.Name(); got != name {
			t.Errorf("the name of %+v is %q, want %q", want, got, name)
		}
		if got, err := Parse(name); err != nil || got != want {
			t.Errorf("%q is %+v, %v, want %+v", name, got, err, want)
		}
	}
}

func TestParseDenies(t *testing.T) {
	for _, name := range []string{
		"", "gpuslice-", "gpuslice-mi", "gpuslice-0mi", "gpuslice-04396mi", "gpuslice-4396Mi",
		"gpuslice-4gi", "gpuslice--4396mi", "gpuslice-4396mi\n",
		"gpuslice-1x4396mi", "gpuslice-0x4396mi", "gpuslice-33x4396mi", "gpuslice-100x4396mi",
		"gpuslice-2x4396mi-from-a.b", "gpuslice-4396mi-of-0mi",
		"gpuslice-4396mi-of-4395mi", "gpuslice-4396mi-share-of-81920mi", "gpuslice-4396mi-share-share", "gpuslice-4396mi-from-gpu.nvidia.com",
		"gpuslice-4396mi-from-", "gpuslice-4396mi-from-A", "gpuslice-4396mi-from-a_b", "gpuslice-4396mi-from--a", "gpuslice-100000000mi",
		"gpuslice-9999999999mi", "gpuslice-99999999999999999999mi", "gpuslice-4396mi-of-100000000mi", "gpuslice-٤mi",
		"gpuslice-4396mi-from-" + strings.Repeat("a", 253), "other-4396mi",
		"gpuslice-1g.10gb", "gpuslice-1g.10gb-or-", "gpuslice-1g.10gb.me-or-4396mi", "gpuslice-1g.010gb-or-4396mi",
		"gpuslice-0g.10gb-or-4396mi", "gpuslice-1gx10gb-or-4396mi",
		"gpuslice-1g.10gb-or-2x4396mi", "gpuslice-1g.10gb-or-4396mi-of-81920mi", "gpuslice-1g.10gb-or-4396mi-from-a.b",
		"gpuslice-4396mi-or-1g.10gb", "gpuslice-1g.10gb-or-1g.10gb-or-4396mi",
		"xgpuslice-4396mi", "gpuslice-4396mi-shares",
	} {
		if got, err := Parse(name); err == nil {
			t.Errorf("%q is read as %+v", name, got)
		}
	}
}

// TestNameOfAny takes templates with any fields: Parse accepts the name of one that is valid, and reads it back.
func TestNameOfAny(t *testing.T) {
	classes := []string{"gpu.nvidia.com", "a.b", "share-from-of-1mi", "", "A", strings.Repeat("a", 220)}
	firsts := []string{"", "", "1g.10gb", "7g.80gb", "1g.10gb.me", "-or-", "A"}
	property := func(class, count, first uint8, memory, of uint32, share bool) bool {
		want := Template{classes[int(class)%len(classes)], quantity.MiB(memory), quantity.MiB(of),
			int(count % 40), share, firsts[int(first)%len(firsts)]}
		if of%2 == 0 {
			want.Of = 0
		}
		got, err := Parse(want.Name())
		if want.Validate() != nil {
			return err != nil
		}
		return err == nil && got == want
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 20000}); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for name := range named {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got, err := Parse(name)
		if err != nil {
			return
		}
		if got.Name() != name || got.Validate() != nil || got.Object("team-a").Name != name {
			t.Errorf("%q is read as %+v, whose name is %q", name, got, got.Name())
		}
	})
}

// TestMatches changes one thing of a claim at a time.
func TestMatches(t *testing.T) {
	for name, template := range named {
		spec := template.Spec()
		if !template.Matches(&spec) {
			t.Errorf("%s does not match itself", name)
		}
		if got, ok := Of(&spec); !ok || got != template {
			t.Errorf("the claim of %s is read as %+v", name, got)
		}
		for other, second := range named {
			if theirs := second.Spec(); other != name && template.Matches(&theirs) {
				t.Errorf("%s matches %s", name, other)
			}
		}
		changes := lies
		if template.Preferred != "" {
			changes = liesOfAlternatives
		}
		for change, do := range changes {
			lie := template.Spec()
			do(&lie)
			if template.Matches(&lie) {
				t.Errorf("%s matches a claim with %s", name, change)
			}
			if got, ok := Of(&lie); ok && got == template {
				t.Errorf("a claim with %s is read as %s", change, name)
			}
		}
	}
}

var derived = []resourcev1.DeviceDerivedAttribute{{Name: "gpu.nvidia.com/uuid", Expression: "'a'"}}

var lies = map[string]func(*resourcev1.ResourceClaimSpec){
	"a byte more": func(s *resourcev1.ResourceClaimSpec) {
		more := s.Devices.Requests[0].Exactly.Capacity.Requests["memory"]
		more.Add(resource.MustParse("1"))
		s.Devices.Requests[0].Exactly.Capacity.Requests["memory"] = more
	},
	"all devices": func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].Exactly.AllocationMode = "All" },
	"another one": func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].Exactly.Count++ },
	"no selector": func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].Exactly.Selectors = nil },
	"no amount":   func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].Exactly.Capacity = nil },
	"adminAccess": func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].Exactly.AdminAccess = new(bool) },
	"derived attributes": func(s *resourcev1.ResourceClaimSpec) {
		s.Devices.Requests[0].Exactly.DerivedAttributes = derived
	},
	"tolerations": func(s *resourcev1.ResourceClaimSpec) {
		s.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Operator: "Exists"}}
	},
	"configs": func(s *resourcev1.ResourceClaimSpec) {
		s.Devices.Config = make([]resourcev1.DeviceClaimConfiguration, 1)
	},
	"constraints": func(s *resourcev1.ResourceClaimSpec) { s.Devices.Constraints = make([]resourcev1.DeviceConstraint, 2) },
	"two requests": func(s *resourcev1.ResourceClaimSpec) {
		s.Devices.Requests = append(s.Devices.Requests, s.Devices.Requests[0])
	},
	"alternatives": func(s *resourcev1.ResourceClaimSpec) {
		s.Devices.Requests[0] = resourcev1.DeviceRequest{Name: "gpu", FirstAvailable: []resourcev1.DeviceSubRequest{{}}}
	},
	"another name": func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].Name = "gpus" },
	"the class":    func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].Exactly.DeviceClassName += ".x" },
}

var liesOfAlternatives = map[string]func(*resourcev1.ResourceClaimSpec){
	"the share alone": func(s *resourcev1.ResourceClaimSpec) {
		s.Devices.Requests[0].FirstAvailable = s.Devices.Requests[0].FirstAvailable[1:]
	},
	"another order": func(s *resourcev1.ResourceClaimSpec) { slices.Reverse(s.Devices.Requests[0].FirstAvailable) },
	"a third": func(s *resourcev1.ResourceClaimSpec) {
		s.Devices.Requests[0].FirstAvailable = append(s.Devices.Requests[0].FirstAvailable, s.Devices.Requests[0].FirstAvailable[1])
	},
	"a larger profile": func(s *resourcev1.ResourceClaimSpec) {
		s.Devices.Requests[0].FirstAvailable[0].Selectors[0].CEL.Expression = beginsInstance + "7g.80gb'"
	},
	"any instance": func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].FirstAvailable[0].Selectors = nil },
	"derived attributes": func(s *resourcev1.ResourceClaimSpec) {
		s.Devices.Requests[0].FirstAvailable[1].DerivedAttributes = derived
	},
	"whole devices": func(s *resourcev1.ResourceClaimSpec) {
		s.Devices.Requests[0].FirstAvailable[0].DeviceClassName = "gpu.nvidia.com"
	},
	"two instances":    func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].FirstAvailable[0].Count = 2 },
	"all instances":    func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].FirstAvailable[0].AllocationMode = "All" },
	"all devices":      func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].FirstAvailable[1].AllocationMode = "All" },
	"no amount":        func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].FirstAvailable[1].Capacity = nil },
	"no selector":      func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].FirstAvailable[1].Selectors = nil },
	"another class":    func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].FirstAvailable[1].DeviceClassName += ".x" },
	"a name of theirs": func(s *resourcev1.ResourceClaimSpec) { s.Devices.Requests[0].FirstAvailable[0].Name = "gpu" },
	"tolerations": func(s *resourcev1.ResourceClaimSpec) {
		s.Devices.Requests[0].FirstAvailable[0].Tolerations = []resourcev1.DeviceToleration{{Operator: "Exists"}}
	},
}
