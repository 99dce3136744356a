package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/charges"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/resourcename"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// LabelQuota is "true" on the ResourceQuotas that gpuslice writes. It touches no others.
const LabelQuota = api.Domain + "/quota"

// NativeQuota is what one ResourceQuota allows of one GPU resource.
type NativeQuota struct {
	Name     string // of the ResourceQuota
	Resource string // as pods name it: "nvidia.com/gpu"
	Hard     int64
	Scope    quota.Scope // of the resource and the pods that it counts, in any namespace
	// Uncounted is why it cannot be counted for renamed pods; "": it can.
	Uncounted string
}

// NativeQuotasOf is what a ResourceQuota allows of GPU resources, in the order of their names: nothing where it limits
// none, or is one of gpuslice's own, whose limit is held under its own name.
func NativeQuotasOf(q *corev1.ResourceQuota) (out []NativeQuota) {
	if q.Labels[LabelQuota] == "true" {
		return nil
	}
	var scope quota.Scope
	counts, uncounted := scope.Narrow(q.Spec)
	if !counts {
		return nil
	}
	for name, hard := range q.Spec.Hard {
		if resource, ok := nativeResource(name); ok {
			scope.Resource = resource
			out = append(out, NativeQuota{Name: q.Name, Resource: resource, Hard: quantity.WholeUnitsBelow(hard), Scope: scope, Uncounted: uncounted})
		}
	}
	slices.SortFunc(out, func(a, b NativeQuota) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}

// nativeResource is the GPU resource that an entry of a ResourceQuota limits.
func nativeResource(name corev1.ResourceName) (resource string, ok bool) {
	resource, ok = strings.CutPrefix(string(name), resourcename.RequestsPrefix)
	return resource, ok && strings.HasPrefix(resource, resourcename.NVIDIAPrefix)
}

// WithNative is q and what the ResourceQuotas of the namespace allow its pods, where the policy has them counted. A pod
// is held against each of them whether it was renamed or not: those that were not leave less room to those that were.
// WithMode audit nothing is renamed, and Kubernetes counts for itself.
func (in Input) WithNative(q quota.Quota, native []NativeQuota) quota.Quota {
	if in.Policy.Quota.Native == modes.NativeOff || in.Policy.EnforcementMode == api.EnforceAudit {
		return q
	}
	limits := slices.Clip(q.Limits)
	for _, n := range native {
		if n.Uncounted == "" {
			scope := n.Scope
			scope.Namespace = in.Namespace.Name
			limits = append(limits, quota.Limit{Name: n.Name + " (ResourceQuota)", Native: true, Scope: scope, Limits: quota.Limits{GPUs: &n.Hard}})
		}
	}
	return quota.Quota{Limits: limits}
}

// DenyQuota is what a want of quota comes to. Policy decides about its own limits; a ResourceQuota is others', and
// would have denied the pod if the rename had left it in sight: what exceeds it is denied under warn as well.
func (in Input) DenyQuota(excess []quota.Excess) Decision {
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
	v.Detail += in.unknownClaims() + rolloutRemedy(in.Pod, excess)
	return v
}

// unknownClaims tells of claims that count although the author may have meant no GPU.
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
			names = append(names, fmt.Sprintf("claim %s counts as GPUs, because its %s %s is not found: create that first", message.Quote(c.Name), of, message.Quote(*what)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + message.ShortList(names)
}

// NativeWarnings tell the author of the pod that was renamed under the Promise which ResourceQuotas go on counting it
// through gpuslice, and which do not count it any more.
func (in Input) NativeWarnings(native []NativeQuota, p *promise.Promise) (out []string) {
	if len(native) == 0 {
		return nil
	}
	away := p.RenamedAway(in.Pod)
	traits := charges.TraitsOf(in.Pod)
	for _, n := range native {
		switch {
		case !slices.Contains(away, n.Resource) || n.Uncounted == "" && !n.Scope.Pods.Match(traits):
		case in.Policy.Quota.Native == modes.NativeOff:
			out = append(out, fmt.Sprintf("ResourceQuota %s counts %s, which this pod does not name; policy has it not counted", n.Name, n.Resource))
		case n.Uncounted != "":
			out = append(out, fmt.Sprintf("ResourceQuota %s counts %s, which this pod does not name; it is not counted: %s", n.Name, n.Resource, n.Uncounted))
		default:
			out = append(out, fmt.Sprintf("ResourceQuota %s counts %s; gpuslice counts this pod for it", n.Name, n.Resource))
		}
	}
	const most = 3
	if more := len(out) - most; more > 0 {
		out = append(out[:most], fmt.Sprintf("and %d more ResourceQuotas", more))
	}
	return out
}
