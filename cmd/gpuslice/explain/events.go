package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/webhook/leader/observe"
)

// component is the source of gpuslice's own Events.
const component = "gpuslice"

// maxEvents bounds the Events that are shown: the newest.
const maxEvents = 20

// relevantEvents picks gpuslice's own Events, and the warnings of others.
func relevantEvents(all []corev1.Event) []event {
	out := []event{}
	for i := range all {
		e := &all[i]
		from := cmp.Or(e.ReportingController, e.Source.Component)
		ours := from == component || len(observe.NoticesOf(e)) > 0
		if !ours && e.Type != corev1.EventTypeWarning {
			continue
		}
		out = append(out, event{
			At: lastSeen(e), Object: strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name, From: from,
			Reason: e.Reason, Text: strings.TrimSpace(e.Message), Count: max(e.Count, 1), Ours: ours,
		})
	}
	slices.SortStableFunc(out, func(a, b event) int { return a.At.Compare(b.At) })
	return out[max(0, len(out)-maxEvents):]
}

// lastSeen is when an Event last happened.
func lastSeen(e *corev1.Event) time.Time {
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
