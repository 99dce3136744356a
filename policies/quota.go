package policies

import (
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// DenyQuota is the decision about a pod that exceeds quotas. The policy's mode applies to its own limits. A pod that exceeds a
// ResourceQuota is denied under warn as well: Kubernetes would have denied it, had its resource not been renamed.
func DenyQuota(in Input, excess []quota.Excess) Decision {
	d := in.Deny(in.quotaDenial(excess))
	native := slices.DeleteFunc(slices.Clone(excess), func(e quota.Excess) bool { return !e.Native })
	if d.Outcome == Denied || len(native) == 0 {
		return d
	}
	d.Outcome, d.Violations, d.Warnings = Denied, []api.Violation{in.quotaDenial(native)}, nil
	return d
}

// quotaDenial is the denial of a pod for want of quota.
func (in Input) quotaDenial(excess []quota.Excess) api.Violation {
	v := *quota.Denial(excess)
	if slices.ContainsFunc(excess, func(e quota.Excess) bool { return e.Requested == "unknown" }) {
		for _, warning := range LabelWarnings(in.Pod.Labels, in.Pod.Annotations) {
			v.Detail += "; " + warning
		}
	}
	if text := copiedWithoutLabels(in.Pod); text != "" {
		v.Detail += "; " + text
	}
	v.Detail += in.unknownClaims() + accounting.RolloutRemedy(in.Pod, excess)
	return v
}

// unknownClaims describes the claims that count although the author may have meant no GPU.
func (in Input) unknownClaims() string {
	var names []string
	for i := range in.Pod.Spec.ResourceClaims {
		c := &in.Pod.Spec.ResourceClaims[i]
		if in.Claims[c.Name] != nil || podspec.IsOurClaim(c.Name) {
			continue
		}
		what, of := c.ResourceClaimTemplateName, "template"
		if what == nil {
			what, of = c.ResourceClaimName, "ResourceClaim"
		}
		if what != nil {
			names = append(names, fmt.Sprintf("claim %s counts as GPUs, because its %s %s is not found: create that first",
				message.Quote(c.Name), of, message.Quote(*what)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + message.ShortList(names)
}
