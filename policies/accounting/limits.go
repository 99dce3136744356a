package accounting

import (
	"cmp"
	"fmt"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// Exceeds holds a charge against a limit; 0 is no limit. where names the pool, and remedy says what to do about too large a charge.
// Memory that is not known cannot be shown to be within a limit.
func Exceeds(charge, limit quota.Charge, who, policy string, where, remedy func() string) *api.Violation {
	above := func(requested, most any, what string) *api.Violation {
		return &api.Violation{Rule: api.RuleLimit, Reason: "above the limit",
			Detail: fmt.Sprintf("%s would hold %v %s on %s, policy %s allows %v; %s", who, requested, what, where(), policy, most, remedy())}
	}
	switch {
	case limit.Memory > 0 && charge.Memory == 0:
		return &api.Violation{Rule: api.RuleLimit, Reason: "memory unknown under a limit", Detail: fmt.Sprintf(
			"%s: the device memory of %s is unknown, so policy %s's limit of %s cannot be held; write %s",
			who, where(), policy, limit.Memory, api.LabelMemory)}
	case limit.Memory > 0 && charge.Memory > limit.Memory:
		return above(charge.Memory, limit.Memory, "of GPU memory")
	case limit.Slices > 0 && charge.Slices > limit.Slices:
		return above(charge.Slices, limit.Slices, "slices")
	case limit.GPUs > 0 && charge.GPUs > limit.GPUs:
		return above(charge.GPUs, limit.GPUs, "GPUs")
	case limit.Devices > 0 && charge.Devices > limit.Devices:
		return above(charge.Devices, limit.Devices, "devices")
	}
	return nil
}

// RequestLess is the remedy if the request itself exceeds the limit.
func RequestLess() string { return "request less" }

// ExceedsBurst holds limit, the most that a container may reach, against what policy allows for its slice.
func ExceedsBurst(slice, limit quantity.MiB, p *config.Policy, container string) *api.Violation {
	most := cmp.Or(p.Limits.MemoryLimit, p.Limits.PerContainer.Memory)
	text := fmt.Sprintf("policy %s allows %s", p.Name, most)
	if ratio := quantity.MiB(p.Limits.MaxLimitRequestRatio); ratio > 0 && (most == 0 || slice*ratio < most) {
		most = slice * ratio
		text = fmt.Sprintf("policy %s allows %d times the slice of %s, %s", p.Name, ratio, slice, most)
	}
	if most == 0 || limit <= max(most, slice) {
		return nil
	}
	return &api.Violation{Rule: api.RuleLimit, Reason: "memory-limit above the limit", Detail: fmt.Sprintf(
		"container %q may reach %s, %s; write %s: %q or less", container, limit, text, api.LabelMemoryLimit, max(most, slice))}
}
