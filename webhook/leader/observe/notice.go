package observe

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/shorten"
)

// Notice is a message of the guard that the kubelet wrote as an Event, or that looks like one: whoever may write Events in
// the namespace can write it too.
type Notice struct {
	Kind NoticeKind `json:"kind"`
	At   time.Time  `json:"at"`
	Text string     `json:"text"`
}

// NoticeKind is the kind of a Notice.
type NoticeKind string

// The kinds of notices.
const (
	NoticeNotEnforcing  NoticeKind = "not-enforcing"  // the guard cannot enforce the pod's slice
	NoticeEnforcing     NoticeKind = "enforcing"      // it can again
	NoticeNotTerminated NoticeKind = "not-terminated" // it could not terminate a process that exceeds its slice
	NoticeNotTerminable NoticeKind = "not-terminable" // it did not try to terminate such a process
	NoticeUnmanaged     NoticeKind = "unmanaged"      // a container without a slice uses a device
	NoticeTerminated    NoticeKind = "terminated"     // it terminated a process that exceeds its slice
)

// Parts of the Event that a kubelet writes when the guard's liveness probe fails.
const (
	unhealthy     = "Unhealthy"
	kubelet       = "kubelet"
	guardField    = "spec.initContainers{" + limits.GuardContainer + "}"
	livenessFails = "Liveness probe failed: "
	combined      = "(combined from similar events): "
)

// beginsNotEnforcing begins the guard's message that it cannot enforce the pod's slice.
const beginsNotEnforcing = "gpuslice cannot enforce this pod's slice"

// dropped is the guard's count of messages that it dropped from its probe.
var dropped = regexp.MustCompile(`^\(\d+ older messages are in the guard's log\) `)

// NoticesOf returns the notices in an Event, the last of each kind: none, unless it claims to come from a kubelet and to be
// about the guard's container of a pod.
func NoticesOf(e *corev1.Event) []Notice { return latest(noticesIn(probeOutput(e), timeOf(e))) }

// probeOutput returns the output of the guard's liveness probe in an Event; "" if the Event is about something else.
func probeOutput(e *corev1.Event) string {
	about := e.InvolvedObject
	if cmp.Or(e.ReportingController, e.Source.Component) != kubelet || e.Reason != unhealthy ||
		about.Kind != "Pod" || about.FieldPath != guardField {
		return ""
	}
	text, ok := strings.CutPrefix(strings.TrimPrefix(e.Message, combined), livenessFails)
	if !ok {
		return ""
	}
	return text
}

// noticesIn returns all notices in one line of the guard's messages.
func noticesIn(line string, at time.Time) (out []Notice) {
	for _, sentence := range sentences(dropped.ReplaceAllString(line, "")) {
		if kind, _ := kindOf(sentence); kind != "" {
			out = append(out, Notice{Kind: kind, At: at, Text: shorten.Line(sentence, maxQuote)})
		}
	}
	return out
}

// sentences splits the output of one probe. The guard joins its messages with a separator that some of them contain: a part
// that begins no message belongs to the one before it.
func sentences(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, "; ") {
		if _, begins := kindOf(part); begins || len(out) == 0 {
			out = append(out, part)
			continue
		}
		out[len(out)-1] += "; " + part
	}
	return out
}

// kindOf returns the kind of a message of the guard, and whether it is one. The kind is "" for messages that are not about
// enforcement.
func kindOf(sentence string) (kind NoticeKind, known bool) {
	for _, s := range []struct {
		begins, holds string
		kind          NoticeKind
	}{
		{begins: beginsNotEnforcing, kind: NoticeNotEnforcing},
		{begins: "gpuslice enforces this pod's slice again", kind: NoticeEnforcing},
		{begins: "gpuslice could not terminate ", kind: NoticeNotTerminated},
		{begins: "gpuslice terminated ", kind: NoticeTerminated},
		{begins: "gpuslice "},
		{holds: " and is not terminated: ", kind: NoticeNotTerminable},
		{holds: " without a slice: it is held to what the pod's slices leave", kind: NoticeUnmanaged},
		{holds: " without a slice: nothing limits it", kind: NoticeUnmanaged}, // of guards of earlier builds
		{holds: " of its "}, {holds: " has exited and its memory is still in use"},
	} {
		if strings.HasPrefix(sentence, s.begins) && strings.Contains(sentence, s.holds) {
			return s.kind, true
		}
	}
	return "", false
}

// timeOf returns when an Event last happened.
func timeOf(e *corev1.Event) time.Time {
	for _, at := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if !at.IsZero() {
			return at.UTC()
		}
	}
	return time.Time{}
}

// latest returns the last notice of each kind, in the order of kinds, so that the same notices encode to the same text.
func latest(notices []Notice) []Notice {
	last := map[NoticeKind]Notice{}
	for _, n := range notices {
		if have, ok := last[n.Kind]; !ok || n.At.After(have.At) {
			last[n.Kind] = n
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b Notice) int { return cmp.Compare(a.Kind, b.Kind) })
}
