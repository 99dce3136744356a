package observe

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// Notice is a sentence of the guard's that the kubelet wrote as an Event, or that seems to be one: whoever may write
// Events in the namespace can write it too.
type Notice struct {
	Kind NoticeKind `json:"kind"`
	At   time.Time  `json:"at"`
	Text string     `json:"text"`
}

// NoticeKind is what a notice is about.
type NoticeKind string

// The kinds of notices.
const (
	NoticeNotEnforcing  NoticeKind = "degraded"           // the guard cannot enforce the pod's slice
	NoticeEnforcing     NoticeKind = "restored"           // it reports that it can again
	NoticeNotTerminated NoticeKind = "termination-failed" // it could not terminate what was over its slice
	NoticeNotTerminable NoticeKind = "not-terminated"     // it does not terminate what is over its slice
	NoticeUnmanaged     NoticeKind = "unmanaged"          // a container without a slice uses a device
	NoticeTerminated    NoticeKind = "terminated"         // it terminated what was over its slice
)

// What a kubelet writes before the output of the guard's liveness probe.
const (
	unhealthy     = "Unhealthy"
	kubelet       = "kubelet"
	guardField    = "spec.initContainers{" + limits.GuardContainer + "}"
	livenessFails = "Liveness probe failed: "
	combined      = "(combined from similar events): "
)

// dropped is the guard's count of messages that no probe carried.
var dropped = regexp.MustCompile(`^\(\d+ older messages are in the guard's log\) `)

// NoticesOf reads the notices that an Event carries: none, unless it says that it comes from a kubelet and is about the
// guard's container of a pod.
func NoticesOf(e *corev1.Event) []Notice {
	about := e.InvolvedObject
	if cmp.Or(e.ReportingController, e.Source.Component) != kubelet || e.Reason != unhealthy || about.Kind != "Pod" || about.FieldPath != guardField {
		return nil
	}
	text, ok := strings.CutPrefix(strings.TrimPrefix(e.Message, combined), livenessFails)
	if !ok {
		return nil
	}
	var out []Notice
	for _, sentence := range sentences(dropped.ReplaceAllString(text, "")) {
		if kind, _ := kindOf(sentence); kind != "" {
			out = append(out, Notice{Kind: kind, At: timeOf(e), Text: sanitize(sentence, maxQuote)})
		}
	}
	return latest(out)
}

// sentences takes apart what one probe carried. The guard joins its sentences with the mark that some of them contain:
// a part that begins no sentence belongs to the one before it.
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

// kindOf tells what a sentence of the guard's is about, and whether it is one: kind is "" for those that say nothing of
// enforcement.
func kindOf(sentence string) (kind NoticeKind, known bool) {
	for _, s := range []struct {
		begins, holds string
		kind          NoticeKind
	}{
		{begins: "gpuslice cannot enforce this pod's slice", kind: NoticeNotEnforcing},
		{begins: "gpuslice enforces this pod's slice again", kind: NoticeEnforcing},
		{begins: "gpuslice could not terminate ", kind: NoticeNotTerminated},
		{begins: "gpuslice terminated ", kind: NoticeTerminated},
		{begins: "gpuslice "},
		{holds: " and is not terminated: ", kind: NoticeNotTerminable},
		{holds: " without a slice: nothing limits it", kind: NoticeUnmanaged},
		{holds: " of its "}, {holds: " has exited and its memory is still in use"},
	} {
		if strings.HasPrefix(sentence, s.begins) && strings.Contains(sentence, s.holds) {
			return s.kind, true
		}
	}
	return "", false
}

// timeOf is when an Event last happened.
func timeOf(e *corev1.Event) time.Time {
	for _, at := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if !at.IsZero() {
			return at.UTC()
		}
	}
	return time.Time{}
}

// latest keeps the last notice of each kind, in the order of kinds, so that the same notices are always the same text.
func latest(notices []Notice) []Notice {
	last := map[NoticeKind]Notice{}
	for _, n := range notices {
		if have, ok := last[n.Kind]; !ok || n.At.After(have.At) {
			last[n.Kind] = n
		}
	}
	var out []Notice
	for _, n := range last {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b Notice) int { return cmp.Compare(a.Kind, b.Kind) })
	return out
}
