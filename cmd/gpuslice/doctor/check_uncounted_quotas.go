package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// checkUncountedQuotas looks for quotas on GPUs that Kubernetes does not count: it counts extended resources as requests
// only.
func checkUncountedQuotas(f *Facts) []Finding {
	var all []Finding
	for _, q := range f.Quotas {
		found := newFinding(Warning, "entries of a ResourceQuota limit nothing: Kubernetes counts GPUs by the name requests.nvidia.com/... only")
		var changes []string
		for _, name := range slices.Sorted(maps.Keys(q.Spec.Hard)) {
			resource := strings.TrimPrefix(string(name), "limits.")
			if !strings.HasPrefix(resource, nvidia.ResourcePrefix) {
				continue
			}
			hard, counted := q.Spec.Hard[name], corev1.ResourceName(corev1.DefaultResourceRequestsPrefix+resource)
			found = found.With(object("resourcequota", q.Namespace, q.Name), "spec.hard["+string(name)+"]", hard.String())
			changes = append(changes, fmt.Sprintf("%q:null", name))
			if _, there := q.Spec.Hard[counted]; !there {
				changes = append(changes, fmt.Sprintf("%q:%q", counted, hard.String()))
			}
		}
		all = append(all, withEvidence(found.WithRemedy("kubectl -n %s patch resourcequota %s --type merge -p '{\"spec\":{\"hard\":{%s}}}'",
			q.Namespace, q.Name, strings.Join(changes, ",")))...)
	}
	return all
}
