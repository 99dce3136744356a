package accounting_test

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// classOf is a class of the devices of a driver, that may be requested by the name of an extended resource.
func classOf(driver, extended string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{}
	c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "device.driver == '" + driver + "'"}}}
	if extended != "" {
		c.Spec.ExtendedResourceName = &extended
	}
	return c
}

func TestOpenAndClosedClasses(t *testing.T) {
	t.Parallel()
	const known = "gpu.nvidia.com,mig.nvidia.com"
	for name, c := range map[string]struct {
		class string
		spec  *resourcev1.DeviceClass
		want  string
	}{
		"NVIDIA's class of whole GPUs":   {"gpu.nvidia.com", classOf("nic.example", ""), known},
		"NVIDIA's class of instances":    {"mig.nvidia.com", classOf("nic.example", ""), known},
		"one that policy lists":          {"listed", classOf("nic.example", ""), "gpu.nvidia.com,listed,mig.nvidia.com"},
		"one of NVIDIA's driver":         {"a", classOf("gpu.nvidia.com", ""), "a," + known},
		"one by the name of a GPU":       {"a", classOf("nic.example", api.ResourceGPU), "a," + known},
		"one of a pool's driver":         {"a", classOf("memory.example", ""), "a," + known},
		"the class of a pool":            {"pooled", classOf("nic.example", ""), known + ",pooled"},
		"one of other devices":           {"a", classOf("nic.example", ""), ""},
		"one by the name of another one": {"a", classOf("nic.example", "acme.example/nic"), ""},
		"one of any device":              {"a", &resourcev1.DeviceClass{}, "a," + known},
	} {
		p := &config.Policy{Mode: modes.OptIn, EnforcementMode: api.EnforceFull, Claims: modes.ClaimsDeny}
		if c.class == "listed" {
			p.DeviceClasses = []string{"listed"}
		}
		d := accounting.DeviceClasses{Policy: p,
			Pools:   []pools.Pool{{DeviceClass: "pooled", DeviceDriver: "memory.example"}, {Resource: api.ResourceGPU}},
			Classes: map[string]*resourcev1.DeviceClass{c.class: c.spec}}
		if got := d.Closed(api.Namespace{}); got != c.want {
			t.Errorf("%s: closed are %q, want %q", name, got, c.want)
		}
	}
	limited := config.QuotaSpec{GPUs: new(int64(1))}
	for name, c := range map[string]struct {
		policy *config.Policy
		open   bool
		closed bool
	}{
		"counted against a quota": {
			&config.Policy{Mode: modes.OptIn, EnforcementMode: api.EnforceFull, Claims: modes.ClaimsCount, Quota: limited}, true, false,
		},
		"counted for no quota": {&config.Policy{Mode: modes.OptIn, EnforcementMode: api.EnforceFull, Claims: modes.ClaimsCount}, false, false},
		"denied": {&config.Policy{Mode: modes.OptIn, EnforcementMode: api.EnforceFull, Claims: modes.ClaimsDeny, Quota: limited},
			false, true},
		"warned about": {
			&config.Policy{Mode: modes.OptIn, EnforcementMode: api.EnforceWarn, Claims: modes.ClaimsCount, Quota: limited}, false, false,
		},
		"off": {&config.Policy{Mode: modes.Off, EnforcementMode: api.EnforceFull, Claims: modes.ClaimsCount, Quota: limited},
			false, false},
		"ungoverned": {nil, false, false},
	} {
		d := accounting.DeviceClasses{Policy: c.policy,
			Classes: map[string]*resourcev1.DeviceClass{"gpu.nvidia.com": classOf("gpu.nvidia.com", "")}}
		if open, closed := d.Open(), d.Closed(api.Namespace{}); (open != "") != c.open || (closed != "") != c.closed {
			t.Errorf("%s: open %q, closed %q", name, open, closed)
		}
	}
}
