package bypass

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/events"
)

// Reasons of the Events.
const (
	reasonBypassed = "GPUSliceBypassed"
	reasonEnded    = "GPUSliceBypassEnded"
)

// writeEvent writes an Event on the namespace. Its name is made of the reason and of the bypass's end, so that each bypass
// is reported once, whichever replica leads.
func (k *Keeper) writeEvent(ctx context.Context, ns *corev1.Namespace, b policies.Bypass, reason string) error {
	e := events.Event{
		Object: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: ns.Name, Namespace: ns.Name, UID: ns.UID},
		Type:   corev1.EventTypeWarning, Reason: reason, Name: fmt.Sprintf("gpuslice-bypass.%x.begun", b.Until.Unix()),
		Message: fmt.Sprintf("gpuslice denies nothing in this namespace until %s", b.Until.UTC().Format(time.RFC3339)),
	}
	if reason == reasonEnded {
		e.Type, e.Name = corev1.EventTypeNormal, fmt.Sprintf("gpuslice-bypass.%x.ended", b.Until.Unix())
		e.Message = "gpuslice denies again what breaks its policies: the bypass is over"
	}
	if b.By != "" {
		e.Message += ", by " + shorten.Line(b.By, maxQuoted)
	}
	if b.Reason != "" {
		e.Message += ": " + shorten.Line(b.Reason, maxQuoted)
	}
	return events.Once(ctx, k.options.Client, e)
}

// maxQuoted bounds an annotation's text in an Event.
const maxQuoted = 256
