package observe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/promise"
)

// ReasonTerminated is the reason of the Events on a pod and its owners about a process that the guard terminated. The guard has
// no rights to write Events. A kubelet writes one when the guard's probe fails, but drops a pod's Events after 25, whatever
// they are about.
const ReasonTerminated = "GPUSliceTerminated"

// terminationTTL is less than the API server keeps Events, so that none is written again after the first is gone.
const terminationTTL = 30 * time.Minute

// terminationsOf returns the last terminations of a pod, oldest first: the ones in the previous observation, and the
// guard's records in the termination messages of the containers with a slice, in its own, and in Events, or the agent's
// in Events. A tenant can write all of these.
func terminationsOf(f *facts) []Termination {
	found := append(slices.Clone(f.before.Terminations), terminationsInStatus(f.pod, f.promise)...)
	for _, e := range f.guard {
		found = append(found, terminationsIn(probeOutput(e), timeOf(e))...)
	}
	for _, r := range f.agent {
		found = append(found, terminationsIn(r.text, r.at)...)
	}
	return lastTerminations(found)
}

// terminationsInStatus returns the records of termination messages.
func terminationsInStatus(pod *corev1.Pod, promised *promise.Promise) (out []Termination) {
	e := &evaluation{pod: pod, promise: promised}
	statuses := []*corev1.ContainerStatus{e.guardStatus()}
	for i := range promised.Containers {
		statuses = append(statuses, e.status(promised.Containers[i].Name))
	}
	for _, s := range statuses {
		if s == nil {
			continue
		}
		for _, end := range []*corev1.ContainerStateTerminated{s.LastTerminationState.Terminated, s.State.Terminated} {
			if end != nil {
				out = append(out, terminationsIn(end.Message, end.FinishedAt.UTC())...)
			}
		}
	}
	return out
}

// terminationsIn returns the terminations in a text. The message of a guard that was killed has its state in another line.
func terminationsIn(text string, at time.Time) (out []Termination) {
	for line := range strings.Lines(text) {
		for _, n := range noticesIn(strings.TrimSuffix(line, "\n"), at) {
			if n.Kind == NoticeTerminated {
				out = append(out, Termination{n.At, n.Text})
			}
		}
	}
	return out
}

// lastTerminations returns the last of them, each once, in an order that does not depend on the order of found.
func lastTerminations(found []Termination) []Termination {
	slices.SortFunc(found, func(a, b Termination) int { return cmp.Or(cmp.Compare(a.Text, b.Text), a.At.Compare(b.At)) })
	found = slices.CompactFunc(found, func(a, b Termination) bool { return a.Text == b.Text })
	slices.SortFunc(found, func(a, b Termination) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Text, b.Text)) })
	return found[max(0, len(found)-maxTerminations):]
}
