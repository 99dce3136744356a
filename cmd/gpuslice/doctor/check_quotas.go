package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/nvidia"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
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
		if !named && p.Resource != resource && p.Resource != "" && slices.Contains(in.Policy.Strategies, p.Strategy) && !slices.Contains(out, p.Resource) {
			out = append(out, p.Resource)
		}
	}
	return out
}

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

// checkLimitRanges looks for LimitRanges that leave no room for the guard, and for those that give a GPU to pods that request none.
func checkLimitRanges(f *Facts) []Finding {
	governed := map[string]bool{}
	for _, g := range f.Governed() {
		governed[g.Name] = true
	}
	guard := guardResources(f)
	var all []Finding
	for _, r := range f.Limits {
		if !governed[r.Namespace] {
			continue
		}
		where := object("limitrange", r.Namespace, r.Name)
		denies := newFinding(Problem, "a LimitRange leaves no room for the guard's containers: pods of this namespace get no guard")
		gives := newFinding(Problem, "a LimitRange gives a GPU to each container that requests none")
		for _, item := range r.Spec.Limits {
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if most, ok := item.Max[name]; ok && most.Cmp(guard[name]) < 0 {
					denies = denies.With(where, "max["+string(name)+"]", most.String())
				}
			}
			for _, name := range slices.Sorted(maps.Keys(item.Default)) {
				if amount := item.Default[name]; strings.HasPrefix(string(name), nvidia.ResourcePrefix) && !amount.IsZero() {
					gives = gives.With(where, "default["+string(name)+"]", amount.String())
				}
			}
		}
		cpu, memory := guard[corev1.ResourceCPU], guard[corev1.ResourceMemory]
		all = append(all, withEvidence(
			denies.WithRemedy("the guard has %s CPU and %s memory: change the chart's values guard.cpu and guard.memory, or the LimitRange", cpu.String(), memory.String()),
			gives.WithRemedy("kubectl -n %s edit limitrange %s, and remove the GPU from default and defaultRequest", r.Namespace, r.Name))...)
	}
	return all
}

// guardResources are the requests of each of the guard's containers.
func guardResources(f *Facts) corev1.ResourceList {
	cpu, memory := installed.GuardCPU, installed.GuardMemory
	if g := installed.Guard(f.Deployment); g != nil {
		cpu, memory = cmp.Or(g.CPU, cpu), cmp.Or(g.Memory, memory)
	}
	list := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if q, err := resource.ParseQuantity(text); err == nil {
			list[name] = q
		}
	}
	return list
}
