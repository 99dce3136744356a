package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNeededPID1(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan  string
		code  int32
		after time.Duration
		want  bool
	}{
		"s6 beside a sidecar": {"time-slicing", 100, time.Second, true}, "runit beside a sidecar": {"time-slicing", 111, 0, true},
		"another code": {"time-slicing", 1, time.Second, false}, "a later end": {"time-slicing", 100, time.Minute, false},
		"by an agent": {"agent", 100, time.Second, false}, "without a guard": {"unguarded", 100, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := started(t, c.plan)
			s.trainer().LastTerminationState = terminated(c.code, "Error", "")
			end := s.trainer().LastTerminationState.Terminated
			end.StartedAt, end.FinishedAt = metav1.NewTime(noon), metav1.NewTime(noon.Add(c.after))
			o := s.observe()
			if got := strings.Contains(o.Containers[0].Ended, "guard.initImages"); got != c.want {
				t.Errorf("the container ended with %q", o.Containers[0].Ended)
			}
		})
	}
}

func TestReportInits(t *testing.T) {
	t.Run("an init that is not PID 1 is reported to pod and owner once, however often it ends", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			want := []string{"Job/nightly GPUSliceNeedsPID1", "Pod/train GPUSliceNeedsPID1"}
			for _, replica := range []string{"a", "b"} {
				r := l.replica(replica)
				for range 3 {
					s.trainer().LastTerminationState = terminated(100, "Error", "")
					s.trainer().LastTerminationState.Terminated.StartedAt, s.trainer().LastTerminationState.Terminated.FinishedAt = metav1.Now(),
						metav1.Now()
					s.trainer().RestartCount++
					l.status(s)
				}
				if diff := cmp.Diff(want, l.events()); diff != "" {
					t.Errorf("events by replica %s (-want +got)\n%s", replica, diff)
				}
				r.stop()
			}
		}, s.pod, s.node)
	})
}
