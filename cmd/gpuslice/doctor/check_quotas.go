package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
)

// checkQuotas looks for quotas on resource names that pods no longer request once gpuslice has renamed their resources,
// and that gpuslice does not count in Kubernetes' place.
func checkQuotas(f *Facts) []Finding {
	governed := map[string]policies.Input{}
	for _, g := range f.Governed() {
		governed[g.Name] = g.Input
	}
	var all []Finding
	for _, q := range f.Quotas {
		in, ours := governed[q.Namespace]
		if !ours {
			continue
		}
		for _, n := range accounting.NativeQuotasOf(q) {
			if others := renames(in, n.Resource, q); len(others) > 0 {
				all = append(all, renamedQuota(q, n, in, others))
			}
		}
	}
	return all
}

// renamedQuota is a quota on a resource that pods may come out requesting by other names.
func renamedQuota(q *corev1.ResourceQuota, n accounting.NativeQuota, in policies.Input, others []string) Finding {
	where, name := object("resourcequota", q.Namespace, q.Name), corev1.DefaultResourceRequestsPrefix+n.Resource
	hard := q.Spec.Hard[corev1.ResourceName(name)]
	if n.Uncounted == "" && in.Policy.Quota.CountsNative() {
		return newFinding(OK, "gpuslice counts pods that it renames for this ResourceQuota").With(where, "spec.hard["+name+"]", hard.String())
	}
	found := newFinding(Warning, "a quota on %s does not count pods that come out requesting %s", n.Resource, strings.Join(others, ", ")).
		With(where, "spec.hard["+name+"]", hard.String())
	if n.Uncounted != "" {
		return found.With(where, "scopes", n.Uncounted).WithRemedy("limit the namespace by quota in its policy")
	}
	var names []string
	for _, other := range others {
		names = append(names, fmt.Sprintf("%q:%q", corev1.DefaultResourceRequestsPrefix+other, hard.String()))
	}
	return found.With("policy/"+in.Policy.Name, "quota.native", "off").
		WithRemedy("set quota.native: check in the policy\nor limit each name: kubectl -n %s patch resourcequota %s --type merge -p '{\"spec\":{\"hard\":{%s}}}'",
			q.Namespace, q.Name, strings.Join(names, ","))
}

// renames are the new resource names in a namespace's pods that the quota does not name.
func renames(in policies.Input, resource string, q *corev1.ResourceQuota) []string {
	var out []string
	for i := range in.Pools {
		p := &in.Pools[i]
		_, named := q.Spec.Hard[corev1.ResourceName(corev1.DefaultResourceRequestsPrefix+p.Resource)]
		if !named && p.Resource != resource && p.Resource != "" && slices.Contains(in.Policy.Strategies, p.Strategy) &&
			!slices.Contains(out, p.Resource) {
			out = append(out, p.Resource)
		}
	}
	return out
}
