package claimtemplates

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/webhook/events"
)

// Reasons of Events.
const (
	ReasonReplaced = "GPUSliceTemplateReplaced"
	ReasonTooMany  = "GPUSliceTooManyTemplates"
)

// reportReplaced writes an Event on the template that was replaced.
func (w *Writer) reportReplaced(ctx context.Context, have *resourcev1.ResourceClaimTemplate) {
	w.report(ctx, events.Event{Object: reference("ResourceClaimTemplate", resourcev1.SchemeGroupVersion.String(), have),
		Type: corev1.EventTypeWarning, Reason: ReasonReplaced,
		Message: "it requested something else than its name, and pods are charged by the name: gpuslice replaced it. Claims that were made of it stay as they are until their pods are deleted: gpuslice audit lists them"})
}

func reference(kind, version string, o metav1.Object) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}

func (w *Writer) report(ctx context.Context, e events.Event) {
	if err := events.Once(ctx, w.options.Client, e); err != nil {
		w.options.Log.Error(err, "claim template not reported", "object", e.Object.Namespace+"/"+e.Object.Name)
	}
}

// reportFull reports to each namespace once that its pods name too many templates.
func (w *Writer) reportFull(ctx context.Context, left remaining) {
	full := map[string]bool{}
	for namespace, n := range left {
		if n >= 0 {
			continue
		}
		if full[namespace] = true; w.full[namespace] {
			continue
		}
		text := fmt.Sprintf(
			"its pods have slices of more than %d sizes by claim: pods of further sizes wait until others are deleted; use fewer sizes",
			MaxTemplates)
		w.options.Log.Info("too many claim templates", "object", "Namespace "+namespace, "reason", text)
		w.report(ctx, events.Event{Object: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: namespace, Name: namespace},
			Type: corev1.EventTypeWarning, Reason: ReasonTooMany, Message: text, Name: strings.ToLower(ReasonTooMany)})
	}
	w.full = full
}
