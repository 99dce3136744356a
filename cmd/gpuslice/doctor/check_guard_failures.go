package doctor

import (
	"fmt"
	"maps"
	"slices"

	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// checkGuardFailures reports the pools on which the last guards could not read the GPUs.
func checkGuardFailures(f *Facts) []Finding {
	var all []Finding
	for _, one := range guardaccess.Of(f.State).Current(f.Now) {
		all = append(all, guardFailure(one).
			WithRemedy("read the guard's log there (kubectl logs POD -c gpuslice-guard) and repair its access; the next guard that reads "+
				"the GPUs ends this. Where every policy demands a guard: kubectl annotate configmap %s -n %s %s-",
				webhookcluster.StateName, f.System, guardaccess.Annotation))
	}
	return all
}

func guardFailure(one guardaccess.Failure) Finding {
	names := slices.Sorted(maps.Keys(one.Namespaces))
	found := newFinding(Note, "a guard could not read the GPUs; if another one cannot, no guard is counted on there")
	reasons := guardaccess.Failures{one}.Reasons(one.Pool, names[0])
	switch {
	case len(names) > 1:
		found = newFinding(Warning, "the last guards could not read the GPUs of a pool: pods are planned there without one")
	case len(reasons) > 0:
		found = newFinding(Warning, "a namespace's last guards could not read the GPUs of a pool: its pods are planned there without one")
	}
	found = found.With("pool/"+one.Pool, "guard.access", one.Access)
	for _, name := range names {
		guards := one.Namespaces[name]
		found = found.With("namespace/"+name, "guard", fmt.Sprintf("%s (started %s)", guards.Reason, guards.Last.Format("2006-01-02 15:04")))
	}
	return found
}
