package observe

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/test/boundedtest"
)

// TestEventsAreSmall: whoever writes Events has a bounded part of each kept, and the notices of kubelets stay.
func TestEventsAreSmall(t *testing.T) {
	event := func(i int) *corev1.Event {
		e := &corev1.Event{ObjectMeta: boundedtest.Meta(i, 200<<10), Reason: unhealthy, Type: corev1.EventTypeWarning,
			Source: corev1.EventSource{Component: kubelet}, Action: strings.Repeat("a", 100<<10),
			Related: &corev1.ObjectReference{Name: strings.Repeat("r", 100<<10)}, ReportingInstance: strings.Repeat("i", 100<<10)}
		e.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Namespace: "team-a", Name: fmt.Sprint("p", i),
			FieldPath: guardField, ResourceVersion: strings.Repeat("v", 100<<10)}
		return e
	}
	for name, change := range map[string]func(*corev1.Event){
		"a message":   func(e *corev1.Event) { e.Message = strings.Repeat("m", 1<<20) },
		"a reason":    func(e *corev1.Event) { e.Reason = strings.Repeat("m", 1<<20) },
		"a component": func(e *corev1.Event) { e.ReportingController = strings.Repeat("m", 1<<20) },
		"an object":   func(e *corev1.Event) { e.InvolvedObject.Name = strings.Repeat("m", 1<<20) },
	} {
		got := boundedtest.KeptOf(t, slimEvent, func(i int) runtime.Object {
			e := event(i)
			change(e)
			return e
		})
		if got > 20<<10 {
			t.Errorf("large by %s: %d bytes are kept", name, got)
		}
	}
	e := event(0)
	e.Message = livenessFails + strings.Repeat("x", 10<<10)
	kept, _ := slimEvent(e)
	if probeOutput(kept.(*corev1.Event)) != probeOutput(e) {
		t.Error("a probe's output of 10 KiB is not kept")
	}
}
