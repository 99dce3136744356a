package observe

import (
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
	terminationBegins = "gpuslice terminated " // what the guard writes, everywhere
	// terminationTTL is less than the API server keeps Events, so that none is written again after the first is gone.
	terminationTTL = 30 * time.Minute
	// maxTerminations bounds the Events of a pod: whoever may write the messages can write many.
	maxTerminations = 10
)

// reported are the terminations of a pod that have Events.
type reported struct {
	uid       types.UID
	sentences []string
}

// terminations returns what the guard wrote about processes that it terminated, each once: in the termination messages of the
// containers with a slice, in its own, and in its notices. A tenant can write all of these.
func terminations(pod *corev1.Pod, promise *promise.Promise, notices []Notice, now time.Time) (out []string) {
	add := func(text string, at time.Time) {
		if text = sanitize(text, maxQuote); strings.HasPrefix(text, terminationBegins) && now.Sub(at) < terminationTTL && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
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
			if end == nil {
				continue
			}
			for _, sentence := range sentences(end.Message) {
				add(sentence, end.FinishedAt.Time)
			}
		}
	}
	for _, n := range notices {
		add(n.Text, n.At)
	}
	return out[:min(len(out), maxTerminations)]
}

// reportTerminations writes an Event about each termination on the pod and its owners, once: the name of the Event does not
// depend on who leads.
func (s *session) reportTerminations(ctx context.Context, key string, pod *corev1.Pod, sentences []string) error {
	for _, sentence := range sentences {
		if !s.isDue(key, pod, sentence) {
			continue
		}
		if err := s.writer.writeOnce(ctx, s.options.Client, pod, sentence); err != nil {
			return err
		}
		s.markReported(key, sentence)
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

// writeOnce writes the Event of a termination on the pod and its owners.
func (w eventWriter) writeOnce(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, sentence string) error {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(string(pod.UID) + sentence))
	event := func(object corev1.ObjectReference, message string) events.Event {
		return events.Event{Object: object, Type: corev1.EventTypeWarning, Reason: ReasonTerminated, Message: message,
			Name: fmt.Sprintf("%s.%s.%x", strings.ToLower(ReasonTerminated), object.UID, hash.Sum64())}
	}
	all := []events.Event{event(podReference(pod), sentence)}
	for _, owner := range w.owners.Of(ctx, pod) {
		all = append(all, event(owner, "pod "+pod.Name+": "+sentence))
	}
	for _, e := range all {
		if err := events.Once(ctx, client, e); err != nil {
			return err
		}
	}
	return nil
}
