package doctor

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
)

// checkQuotas looks for quotas on resource names that pods no longer ask for once gpuslice has renamed what they request.
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
		for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
			resource, counts := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
			if !counts || !strings.HasPrefix(resource, "nvidia.com/") {
				continue
			}
			if others := renames(in, resource, q); len(others) > 0 {
				hard := q.Spec.Hard[name]
				all = append(all, newFinding(Warning, "a quota on %s does not count pods that come out requesting %s", resource, strings.Join(others, ", ")).
					With(object("resourcequota", q.Namespace, q.Name), "spec.hard["+string(name)+"]", hard.String()).
					WithRemedy("kubectl -n %s patch resourcequota %s --type merge -p '{\"spec\":{\"hard\":{\"requests.%s\":\"%s\"}}}'\nor limit the namespace by a quota of its policy",
						q.Namespace, q.Name, others[0], hard.String()))
			}
		}
	}
	return all
}

// renames are the resources that pods of a namespace may come out asking for, which the quota does not name.
func renames(in policies.Input, resource string, q *corev1.ResourceQuota) []string {
	var out []string
	for i := range in.Pools {
		p := &in.Pools[i]
		_, named := q.Spec.Hard[corev1.ResourceName(corev1.DefaultResourceRequestsPrefix+p.Resource)]
		if !named && p.Resource != resource && slices.Contains(in.Policy.Strategies, p.Strategy) && !slices.Contains(out, p.Resource) {
			out = append(out, p.Resource)
		}
	}
	return out
}
