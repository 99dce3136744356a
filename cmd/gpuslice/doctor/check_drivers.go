package doctor

import (
	"cmp"
	"strconv"
)

// Releases of the driver on which a tier rests.
const (
	guardDriver  = 565 // a guard in the pod sees its neighbours' PIDs with their memory, from 565.57.01
	limitsDriver = 615 // the driver's own limit for each cgroup
)

// checkDrivers reports which tiers the nodes' drivers allow.
func checkDrivers(f *Facts) []Finding {
	old := newFinding(Warning, "driver before 565.57: a guard in the pod sees no memory that it may act on, so it is not injected there and the guard tier does not hold")
	unknown := newFinding(Note, "nodes without a driver label: whether a guard can act there is seen only when a pod runs")
	fit := newFinding(OK, "driver 565.57 or later: a guard in the pod can hold a slice")
	limits := newFinding(Note, "driver 615 or later: with container toolkit 1.20.1 and cgroup v2 the driver's own limit holds a slice; declare driverLimits on the pool once the toolkit is there")
	for _, n := range gpuNodes(f) {
		text := cmp.Or(n.Labels[labelDriver], n.Labels[labelMajor], n.Labels[labelMajorV0])
		major, err := strconv.Atoi(cmp.Or(n.Labels[labelMajor], n.Labels[labelMajorV0]))
		where, field := object("node", "", n.Name), "metadata.labels["+labelDriver+"]"
		switch {
		case err != nil && n.Labels[labelGKEAccelerator] != "" && n.Labels[labelGKENoPlugin] != "true": // where no guard runs: platform reports it
		case err != nil:
			unknown = unknown.With(where, field, cmp.Or(text, "missing"))
		case major < guardDriver:
			old = old.With(where, field, text)
		case major >= limitsDriver:
			limits = limits.With(where, field, text)
		default:
			fit = fit.With(where, field, text)
		}
	}
	old = old.WithRemedy("upgrade the driver on these nodes to 565.57.01 or later; for instance kubectl patch clusterpolicy cluster-policy --type merge -p '{\"spec\":{\"driver\":{\"version\":\"580.95.05\"}}}' with the GPU Operator")
	return withEvidence(old, unknown, limits, fit)
}

// withEvidence are the findings that rest on something.
func withEvidence(all ...Finding) []Finding {
	var out []Finding
	for _, f := range all {
		if len(f.Evidence) > 0 {
			out = append(out, f)
		}
	}
	return out
}
