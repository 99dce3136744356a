package observe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/webhook/events"
)

// agentReport is an Event that the agent of a node wrote about a pod, or that somebody made up.
type agentReport struct {
	reason, text string
	at           time.Time
}

// watchAgentEvents returns the informer of the Events that agents, and gpuslice itself, write about pods.
func watchAgentEvents(client kubernetes.Interface, full func(kind, namespace string)) cache.SharedIndexInformer {
	return eventsAbout(client, full, "Events of agents", fields.Set{"involvedObject.kind": "Pod", "source": events.Component})
}

// agentReports returns the reports of the pod's node's agent in Events, oldest first.
func agentReports(pod *corev1.Pod, written []*corev1.Event) (out []agentReport) {
	for _, e := range written {
		if node := e.Source.Host; node != "" && node == pod.Spec.NodeName && e.Source.Component == events.Component &&
			e.Type == corev1.EventTypeWarning && strings.HasPrefix(e.Reason, "GPUSlice") {
			out = append(out, agentReport{e.Reason, shorten.Line(strings.TrimPrefix(e.Message, combined), maxSentence), timeOf(e)})
		}
	}
	slices.SortFunc(out, func(a, b agentReport) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.text, b.text)) })
	return out
}
