package accounting_test

import (
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

func TestExceeds(t *testing.T) {
	t.Parallel()
	held := quota.Charge{Memory: 8192, Slices: 2, GPUs: 2, Devices: 2 * quantity.Device}
	for name, c := range map[string]struct {
		charge, limit quota.Charge
		want          string
	}{
		"no limit":                   {held, quota.Charge{}, ""},
		"no limit, unknown memory":   {quota.Charge{Slices: 1}, quota.Charge{}, ""},
		"another limit alone":        {quota.Charge{Slices: 1}, quota.Charge{Slices: 1}, ""},
		"up to all limits":           {held, held, ""},
		"unknown memory":             {quota.Charge{Slices: 1}, quota.Charge{Memory: 1}, "the device memory of pool l4 is unknown"},
		"a MiB above":                {quota.Charge{Memory: 8193}, quota.Charge{Memory: 8192}, "of GPU memory"},
		"a slice above":              {quota.Charge{Slices: 3}, quota.Charge{Slices: 2}, "3 slices"},
		"a GPU above":                {quota.Charge{GPUs: 3}, quota.Charge{GPUs: 2}, "3 GPUs"},
		"a part of a device above":   {quota.Charge{Devices: quantity.Device + 1}, quota.Charge{Devices: quantity.Device}, "devices"},
		"nothing held of the limits": {quota.Charge{}, quota.Charge{Slices: 1, GPUs: 1, Devices: 1}, ""},
	} {
		v := accounting.Exceeds(c.charge, c.limit, "the pod", "team", func() string { return "pool l4" }, accounting.RequestLess)
		if (v == nil) != (c.want == "") || v != nil && !strings.Contains(v.Detail, c.want) {
			t.Errorf("%s: %v, want %q", name, v, c.want)
		}
	}
}

func TestExceedsBurst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		memoryLimit, perContainer api.MiB
		ratio                     int
		limit                     api.MiB
		want                      string
	}{
		"no limit":                               {0, 0, 0, 90 << 10, ""},
		"up to the limit":                        {12 << 10, 0, 0, 12 << 10, ""},
		"above the limit":                        {12 << 10, 0, 0, 13 << 10, "policy team allows 12Gi; write"},
		"above the limit of a container":         {0, 12 << 10, 0, 13 << 10, "policy team allows 12Gi; write"},
		"the limit of bursts comes first":        {12 << 10, 6 << 10, 0, 12 << 10, ""},
		"a slice above the limit":                {4 << 10, 0, 0, 8 << 10, ""},
		"up to the ratio":                        {0, 0, 2, 16 << 10, ""},
		"above the ratio":                        {0, 0, 2, 17 << 10, "policy team allows 2 times the slice of 8Gi, 16Gi; write"},
		"above the ratio, within another limit":  {20 << 10, 0, 2, 17 << 10, "2 times the slice of 8Gi, 16Gi; write"},
		"within the ratio, above another limit":  {12 << 10, 0, 2, 13 << 10, "policy team allows 12Gi; write"},
		"above a limit that is as the ratio":     {16 << 10, 0, 2, 17 << 10, "policy team allows 16Gi; write"},
		"above a ratio of one, but for no slice": {0, 0, 1, 8 << 10, ""},
	} {
		p := &config.Policy{Name: "team"}
		p.Limits.MemoryLimit, p.Limits.PerContainer.Memory, p.Limits.MaxLimitRequestRatio = c.memoryLimit, c.perContainer, c.ratio
		v := accounting.ExceedsBurst(8<<10, c.limit, p, "main")
		if (v == nil) != (c.want == "") || v != nil && !strings.Contains(v.Detail, c.want) {
			t.Errorf("%s: %v, want %q", name, v, c.want)
		}
	}
}
