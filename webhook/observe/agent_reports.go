package observe

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/webhook/events"
)

// agentReport is an Event that the agent of a node wrote about a pod, or that somebody made up. An agent may write no Events on
// owners: the leader does, as it does of sidecars.
type agentReport struct {
	reason, text string
	at           time.Time
}

// watchAgentEvents returns the informer of the Events that agents, and gpuslice itself, write about pods.
func watchAgentEvents(client kubernetes.Interface, full func(kind, namespace string)) cache.SharedIndexInformer {
	return eventsAbout(client, full, "Events of agents", fields.Set{"involvedObject.kind": "Pod", "source": events.Component})
}

// agentReports returns what the agent of the pod's node reported, oldest first.
func (s *session) agentReports(pod *corev1.Pod) (out []agentReport) {
	for _, e := range eventsIn(s.agentEvents, pod) {
		if node := e.Source.Host; node != "" && node == pod.Spec.NodeName && e.Source.Component == events.Component &&
			e.Type == corev1.EventTypeWarning && strings.HasPrefix(e.Reason, "GPUSlice") {
			out = append(out, agentReport{e.Reason, sanitize(strings.TrimPrefix(e.Message, combined), maxSentence), timeOf(e)})
		}
	}
	slices.SortFunc(out, func(a, b agentReport) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.text, b.text)) })
	return out
}

// reportToOwners writes each report of the agent on the owners of the pod, once.
func (s *session) reportToOwners(ctx context.Context, key string, pod *corev1.Pod) error {
	for _, r := range s.agentReports(pod) {
		if time.Since(r.at) >= terminationTTL || !s.isDue(key, pod, r.text) {
			continue
		}
		if err := s.writer.writeOnce(ctx, s.options.Client, s.writer.owners.Of(ctx, pod), pod, r.reason, r.text); err != nil {
			return err
		}
		s.markReported(key, r.text)
	}
	return nil
}
