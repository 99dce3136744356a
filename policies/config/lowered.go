package config

import (
	"slices"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// Lowered names the limits and quotas of the policy that allow less than those of an earlier version: pods that run keep what they hold.
func (p *Policy) Lowered(before *Policy) (fields []string) {
	lower := func(field string, was, is int64) {
		if is > 0 && (was == 0 || is < was) && !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	for _, d := range quota.Dimensions() {
		was, limited := d.Limit(before.Quota.Whole())
		if is, holds := d.Limit(p.Quota.Whole()); holds && (!limited || is < was) {
			fields = append(fields, "quota."+d.Name)
		}
		lower("limits.perContainer."+d.Name, d.Amount(before.Limits.PerContainer), d.Amount(p.Limits.PerContainer))
		lower("limits.perPod."+d.Name, d.Amount(before.Limits.PerPod), d.Amount(p.Limits.PerPod))
	}
	lower("limits.memoryLimit", int64(before.Limits.MemoryLimit), int64(p.Limits.MemoryLimit))
	return fields
}
