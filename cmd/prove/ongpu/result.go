package ongpu

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/record"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/doctor"
	"github.com/gpuslice/gpuslice/cmd/prove/proof"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// promisedOn returns an error where a pod did not get a slice of the pool, and whether a guard is planned for it.
func promisedOn(pod *corev1.Pod, pool *pools.Pool) (guarded bool, err error) {
	promise, err := record.Promise(pod)
	switch {
	case err != nil:
		return false, err
	case promise == nil:
		return false, fmt.Errorf("pod %s got no slice: the API server does not reach the webhook, or leaves the namespace out", pod.Name)
	case len(promise.Pools) != 1 || promise.Pools[0] != pool.Name:
		return false, fmt.Errorf("pod %s got a slice of %s", pod.Name, strings.Join(promise.Pools, ", "))
	}
	for _, c := range promise.Planned.Containers {
		for _, t := range c.Tiers {
			guarded = guarded || t == api.TierGuard
		}
	}
	return guarded, nil
}

// unchanged returns an error if somebody changed a pod's containers since it was created: the report may be theirs.
func unchanged(created, ended *corev1.Pod) error {
	images := func(pod *corev1.Pod) (all []string) {
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			all = append(all, c.Name+"="+c.Image)
		}
		return all
	}
	if created.UID != ended.UID || len(ended.Spec.EphemeralContainers) > 0 || !slices.Equal(images(created), images(ended)) {
		return fmt.Errorf("somebody changed pod %s while it ran, so nothing follows: use a namespace that nobody else may use", ended.Name)
	}
	return nil
}

// readReport reads the program's report to the kubelet: of the way that was ordered, and of no other.
func readReport(message string, ordered proof.Way) (r proof.Report, err error) {
	if err := json.Unmarshal([]byte(message), &r); err != nil {
		return proof.Report{}, fmt.Errorf("the program reported nothing: %s", cmp.Or(cli.OneLine(message), "no termination message"))
	}
	r.Attempts = slices.DeleteFunc(r.Attempts, func(a proof.Attempt) bool { return a.Way != ordered })
	if len(r.Attempts) == 0 {
		return proof.Report{}, fmt.Errorf("the program reported nothing about %s", ordered)
	}
	return r, nil
}

// attemptText is one attempt in a line.
func attemptText(a proof.Attempt) string {
	text := fmt.Sprintf("%s: %s", a.Way, cmp.Or(string(a.Held), "nothing follows"))
	if a.ReactionMilliseconds > 0 {
		text += fmt.Sprintf(" after %.1fs", float64(a.ReactionMilliseconds)/1000)
	}
	if a.Detail != "" {
		text += " (" + cli.OneLine(a.Detail) + ")"
	}
	return text
}

// tried is what a program found that went past its slice of a pool.
type tried struct {
	Pool string
	proof.Report
}

// String is what was proved, for people.
func (r tried) String() string {
	return fmt.Sprintf("%s (%s, driver %s)", r.Tier(), r.Taken.Format("2006-01-02"), r.Driver)
}

// leaks are the ways that nothing stopped.
func (r tried) leaks() (ways []proof.Way) {
	for _, a := range r.Attempts {
		if a.Held == proof.Nothing || a.Held == proof.Unknown {
			ways = append(ways, a.Way)
		}
	}
	return ways
}

// resultOf is the finding about a pool that was tried, for which a tier is planned.
func resultOf(r tried, planned api.Tier) doctor.Finding {
	found := newFinding(doctor.OK, "pool %s: %s is planned, and proven", r.Pool, planned)
	leaks, lacks := r.leaks(), r.Lacks(string(planned))
	leaked := slices.ContainsFunc(lacks, func(w proof.Way) bool { return slices.Contains(leaks, w) })
	switch {
	case r.Proves(string(planned)) && planned != api.TierNone:
	case planned == api.TierNone:
		found = newFinding(doctor.Warning, "pool %s: nothing is planned to hold slices, and %s is proven", r.Pool, r.Tier())
	case leaked:
		found = newFinding(doctor.Problem, "pool %s: %s is planned, and does not hold all that it promises", r.Pool, planned)
	default:
		found = newFinding(doctor.Warning, "pool %s: %s is planned, and not proven", r.Pool, planned)
	}
	where := "pool/" + r.Pool
	found = found.With(where, "proven", r.String())
	for _, a := range r.Attempts {
		found = found.With(where, "", attemptText(a))
	}
	if n := r.Readings; n != nil {
		text := fmt.Sprintf("PIDs %s, amounts %s", n.PIDs, n.Amounts)
		if n.Detail != "" {
			text += " (" + cli.OneLine(n.Detail) + ")"
		}
		found = found.With(where, "NVML in the pod", text)
	}
	if len(lacks) > 0 && found.Level != doctor.OK {
		var names []string
		for _, w := range lacks {
			names = append(names, string(w))
		}
		found = found.WithRemedy("see why that does not hold %s: gpuslice doctor, and the pod's annotation %s",
			strings.Join(names, ", "), api.AnnotationObserved)
	}
	return found
}
