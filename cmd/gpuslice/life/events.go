package life

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/webhook/observe"
)

// component is what gpuslice's own Events come from.
const component = "gpuslice"

// maxTold bounds the Events that are told: the newest.
const maxTold = 20

// told picks the Events that matter: ours, and warnings of others.
func told(all []corev1.Event) []Event {
	out := []Event{}
	for i := range all {
		e := &all[i]
		from := cmp.Or(e.ReportingController, e.Source.Component)
		ours := from == component || len(observe.NoticesOf(e)) > 0
		if !ours && e.Type != corev1.EventTypeWarning {
			continue
		}
		out = append(out, Event{
			At: at(e), Object: strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name, From: from,
			Reason: e.Reason, Text: strings.TrimSpace(e.Message), Count: max(e.Count, 1), Ours: ours,
		})
	}
	slices.SortStableFunc(out, func(a, b Event) int { return a.At.Compare(b.At) })
	return out[max(0, len(out)-maxTold):]
}

// at is when an Event last happened.
func at(e *corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}
