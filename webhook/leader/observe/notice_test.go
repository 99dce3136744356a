package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard"
)

// TestNoticesOfGuardMessages keeps this package and the guard's messages together.
func TestNoticesOfGuardMessages(t *testing.T) {
	t.Parallel()
	python := guard.Process{PID: 9, Command: "python", UsedBytes: 6 << 30}
	order := guard.Order{Kind: guard.TerminateProcess, Container: "trainer", Device: "GPU-1", Process: python,
		UsedBytes: 6 << 30, LimitBytes: 4 << 30, OverFor: 2 * time.Second}
	about := guard.Event{Container: "trainer", Device: "GPU-1", Process: python, UsedBytes: 6 << 30, LimitBytes: 4 << 30,
		SliceBytes: 4 << 30, Reason: "a reason; of two parts"}
	as := func(kind guard.EventKind, result guard.Result) guard.Event {
		e := about
		e.Kind, e.Outcome = kind, &guard.Outcome{Order: order, Result: result, Reason: "it did not exit"}
		return e
	}
	for name, tt := range map[string]struct {
		event guard.Event
		want  NoticeKind
	}{
		"degraded":                 {as(guard.NotEnforcing, ""), NoticeNotEnforcing},
		"restored":                 {as(guard.Enforcing, ""), NoticeEnforcing},
		"terminated":               {as(guard.TerminationResult, guard.Terminated), NoticeTerminated},
		"denied":                   {as(guard.TerminationResult, guard.Denied), NoticeNotTerminated},
		"timed out":                {as(guard.TerminationResult, guard.TimedOut), NoticeNotTerminated},
		"not terminated":           {as(guard.NotTerminated, ""), NoticeNotTerminable},
		"unmanaged":                {as(guard.Unmanaged, ""), NoticeUnmanaged},
		"a warning":                {as(guard.NearLimit, ""), ""},
		"out of memory in a slice": {as(guard.OOMWithinSlice, ""), ""},
		"memory not released":      {as(guard.MemoryNotReleased, ""), ""},
		"a process that was gone":  {as(guard.TerminationResult, guard.Gone), ""},
		"a dry run":                {as(guard.TerminationResult, guard.DryRun), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sentence := tt.event.Message()
			var want []Notice
			if tt.want != "" {
				want = []Notice{{tt.want, noon, sentence}}
			}
			pod := &corev1.Pod{}
			if diff := cmp.Diff(want, NoticesOf(event(pod, noon, sentence))); diff != "" {
				t.Errorf("%q (-want +got)\n%s", sentence, diff)
			}
			warned := as(guard.NearLimit, "").Message()
			if diff := cmp.Diff(want,
				NoticesOf(event(pod, noon, "(3 older messages are in the guard's log) "+warned+"; "+sentence+"; "+warned))); diff != "" {
				t.Errorf("%q among others (-want +got)\n%s", sentence, diff)
			}
		})
	}
}

func TestNoticesOfOthers(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*corev1.Event){
		"another component":              func(e *corev1.Event) { e.ReportingController, e.Source.Component = "tenant", "tenant" },
		"another reporter beside":        func(e *corev1.Event) { e.ReportingController = "tenant" },
		"no component":                   func(e *corev1.Event) { e.ReportingController, e.Source.Component = "", "" },
		"another reason":                 func(e *corev1.Event) { e.Reason = "Killing" },
		"another container":              func(e *corev1.Event) { e.InvolvedObject.FieldPath = "spec.containers{trainer}" },
		"another kind of object":         func(e *corev1.Event) { e.InvolvedObject.Kind = "Job" },
		"another probe":                  func(e *corev1.Event) { e.Message = "Startup probe failed: " + notEnforcing },
		"a probe that found no guard":    func(e *corev1.Event) { e.Message = livenessFails + "guard: no guard runs in this container" },
		"a probe that took too long":     func(e *corev1.Event) { e.Message = livenessFails + "command timed out" },
		"words of ours inside of others": func(e *corev1.Event) { e.Message = livenessFails + "they say gpuslice terminated it" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := event(&corev1.Pod{}, noon, notEnforcing)
			edit(e)
			if got := NoticesOf(e); len(got) > 0 {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestNoticesOfCombinedEvents(t *testing.T) {
	t.Parallel()
	e := event(&corev1.Pod{}, noon, notEnforcing)
	e.Message = combined + e.Message
	if got := NoticesOf(e); len(got) != 1 || got[0].Kind != NoticeNotEnforcing {
		t.Errorf("%q", got)
	}
}

func FuzzNoticesOf(f *testing.F) {
	for _, text := range []string{notEnforcing,
		"(3 older messages are in the guard's log) a; b; " + notEnforcing, "; ; ", "gpuslice terminated \xff;"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := NoticesOf(event(&corev1.Pod{}, noon, text))
		if len(got) > maxNotices {
			t.Errorf("%d notices", len(got))
		}
		for _, n := range got {
			if len(n.Text) > maxQuote || strings.ContainsAny(n.Text, "\n\x00") {
				t.Errorf("%q", n.Text)
			}
		}
	})
}
