package accounting

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// NativeQuota is the limit of one ResourceQuota on one GPU resource.
type NativeQuota struct {
	Name     string // of the ResourceQuota
	Resource string // as pods name it: "nvidia.com/gpu"
	Hard     int64
	Scope    quota.Scope // of the resource and the pods that it counts, in any namespace
	// Uncounted is why it cannot be counted for renamed pods; "": it can.
	Uncounted string
}

// NativeQuotasOf returns the limits of a ResourceQuota on GPU resources, sorted by name: none if it limits none.
func NativeQuotasOf(q *corev1.ResourceQuota) (out []NativeQuota) {
	var scope quota.Scope
	counts, uncounted := scope.Narrow(q.Spec)
	if !counts {
		return nil
	}
	for name, hard := range q.Spec.Hard {
		if resource, ok := nativeResource(name); ok {
			scope.Resource = resource
			out = append(out,
				NativeQuota{Name: q.Name, Resource: resource, Hard: quantity.WholeUnitsBelow(hard), Scope: scope, Uncounted: uncounted})
		}
	}
	slices.SortFunc(out, func(a, b NativeQuota) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}

// nativeResource is the GPU resource that an entry of a ResourceQuota limits.
func nativeResource(name corev1.ResourceName) (resource string, ok bool) {
	resource, ok = strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return resource, ok && strings.HasPrefix(resource, nvidia.ResourcePrefix)
}

// WithNative adds to q the limits of the namespace's ResourceQuotas, if the policy p counts them. Each applies to a pod
// whether it was renamed or not: pods that were not renamed leave less room to those that were. WithMode audit nothing
// is renamed, and Kubernetes counts by itself.
func WithNative(q quota.Quota, p *config.Policy, namespace string, native []NativeQuota) quota.Quota {
	if p.Quota.Native == modes.NativeOff || p.EnforcementMode == api.EnforceAudit {
		return q
	}
	limits := slices.Clip(q.Limits)
	for _, n := range native {
		if n.Uncounted == "" {
			scope := n.Scope
			scope.Namespace = namespace
			limits = append(limits, quota.Limit{Name: n.Name + " (ResourceQuota)", Native: true, Scope: scope, Limits: quota.Limits{GPUs: &n.Hard}})
		}
	}
	return quota.Quota{Limits: limits}
}

// NativeWarnings are for the author of the pod that was renamed under the Promise given: which ResourceQuotas go on counting it
// through gpuslice, and which do not count it any more.
func NativeWarnings(p *config.Policy, pod *corev1.Pod, native []NativeQuota, given *promise.Promise) (out []string) {
	if len(native) == 0 {
		return nil
	}
	away := renamedAway(given, pod)
	traits := traitsOf(pod)
	for _, n := range native {
		switch {
		case !slices.Contains(away, n.Resource) || n.Uncounted == "" && !n.Scope.Pods.Match(traits):
		case p.Quota.Native == modes.NativeOff && given != nil && len(given.ClaimTemplates()) > 0:
			out = append(out, fmt.Sprintf("ResourceQuota %s counts %s, which this pod does not name; Kubernetes counts its claim there if the device class "+
				"has that name, and where the quota is full the pod waits", n.Name, n.Resource))
		case p.Quota.Native == modes.NativeOff:
			out = append(out, fmt.Sprintf("ResourceQuota %s counts %s, which this pod does not name; policy has it not counted", n.Name, n.Resource))
		case n.Uncounted != "":
			out = append(out,
				fmt.Sprintf("ResourceQuota %s counts %s, which this pod does not name; it is not counted: %s", n.Name, n.Resource, n.Uncounted))
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
