package observe

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/events"
)

// ReasonTerminated is the reason of the Events on a pod and its owners about a process that the guard terminated. The guard has
// no rights to write Events. A kubelet writes one when the guard's probe fails, but drops those of a pod after 25, whatever
// they are about.
const ReasonTerminated = "GPUSliceTerminated"

const (
	// terminationTTL is less than the API server keeps Events, so that none is written again after the first is gone.
	terminationTTL = 30 * time.Minute
)

// reported are the sentences about a pod that have Events.
type reported struct {
	uid       types.UID
	sentences []string
}

// terminations returns the last terminations of a pod, oldest first: those of the previous observation, and what the guard
// wrote in the termination messages of the containers with a slice, in its own, and in Events, or the agent in Events. A tenant
// can write all of these.
func (s *session) terminations(pod *corev1.Pod, promise *promise.Promise, before Observation) []Termination {
	found := append(slices.Clone(before.Terminations), terminationsInStatus(pod, promise)...)
	for _, e := range eventsIn(s.events, pod) {
		found = append(found, terminationsIn(probeOutput(e), timeOf(e))...)
	}
	for _, r := range s.agentReports(pod) {
		found = append(found, terminationsIn(r.text, r.at)...)
	}
	return lastTerminations(found)
}

// terminationsInStatus returns what termination messages have.
func terminationsInStatus(pod *corev1.Pod, promise *promise.Promise) (out []Termination) {
	e := &evaluation{pod: pod, promise: promise}
	statuses := []*corev1.ContainerStatus{e.guardStatus()}
	for i := range promise.Containers {
		statuses = append(statuses, e.status(promise.Containers[i].Name))
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

// report writes Events about what the pod's guard reported.
func (s *session) report(ctx context.Context, key string, pod *corev1.Pod, promise *promise.Promise, terminations []Termination) error {
	if promise.Guard != nil && promise.Guard.Agent {
		return s.reportToOwners(ctx, key, pod)
	}
	if err := s.reportInits(ctx, key, pod, promise); err != nil {
		return err
	}
	return s.reportTerminations(ctx, key, pod, terminations)
}

// reportTerminations writes an Event about each termination on the pod and its owners, once: the name of the Event does not
// depend on who leads.
func (s *session) reportTerminations(ctx context.Context, key string, pod *corev1.Pod, terminations []Termination) error {
	for _, t := range terminations {
		if time.Since(t.At) >= terminationTTL || !s.isDue(key, pod, t.Text) {
			continue
		}
		about := append([]corev1.ObjectReference{podReference(pod)}, s.writer.owners.Of(ctx, pod)...)
		if err := s.writer.writeOnce(ctx, s.options.Client, about, pod, ReasonTerminated, t.Text); err != nil {
			return err
		}
		s.markReported(key, t.Text)
	}
	return nil
}

// isDue reports whether no Event was written about the sentence, and the pod may have more.
func (s *session) isDue(key string, pod *corev1.Pod, sentence string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.reported[key]; !ok || r.uid != pod.UID {
		s.reported[key] = reported{uid: pod.UID}
	}
	done := s.reported[key].sentences
	return len(done) < maxTerminations && !slices.Contains(done, sentence)
}

func (s *session) markReported(key, sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reported[key]
	r.sentences = append(r.sentences, sentence)
	s.reported[key] = r
}

// writeOnce writes an Event of a pod on it or its owners.
func (w eventWriter) writeOnce(ctx context.Context, client kubernetes.Interface, about []corev1.ObjectReference, pod *corev1.Pod, reason, sentence string) error {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(string(pod.UID) + sentence))
	for _, object := range about {
		message := sentence
		if object.UID != pod.UID {
			message = "pod " + pod.Name + ": " + sentence
		}
		err := events.Once(ctx, client, events.Event{Object: object, Type: corev1.EventTypeWarning, Reason: reason, Message: message,
			Name: fmt.Sprintf("%s.%s.%x", strings.ToLower(reason), object.UID, hash.Sum64())})
		if err != nil {
			return err
		}
	}
	return nil
}
