package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReportTerminations(t *testing.T) {
	t.Run("a termination is reported to pod and owner once, without an Event of the kubelet", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			r := l.replica("a")
			const sentence = "gpuslice terminated python (pid 214, 9.1Gi) in trainer: 9.1Gi of 4Gi on gpu0 for 3.2s"
			s.trainer().LastTerminationState = terminated(143, "Error", sentence)
			s.trainer().LastTerminationState.Terminated.FinishedAt = metav1.Now()
			l.status(s)
			want := []string{"Job/nightly GPUSliceTerminated", "Pod/train GPUSliceTerminated"}
			if diff := cmp.Diff(want, l.events()); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
			l.kubelet(s, time.Now(), sentence) // the same, by the other way
			if diff := cmp.Diff(want, l.events()); diff != "" {
				t.Errorf("events after a notice of the same (-want +got)\n%s", diff)
			}
			r.stop()
			r = l.replica("b")
			defer r.stop()
			s.trainer().LastTerminationState.Terminated.Message = "gpuslice terminated python (pid 300, 5Gi) in trainer: 5Gi of 4Gi on gpu0"
			l.status(s)
			want = []string{"Job/nightly GPUSliceTerminated", "Job/nightly GPUSliceTerminated",
				"Pod/train GPUSliceTerminated", "Pod/train GPUSliceTerminated"}
			if diff := cmp.Diff(want, l.events()); diff != "" {
				t.Errorf("events of another termination under another leader (-want +got)\n%s", diff)
			}
		}, s.pod, s.node)
	})
	t.Run("what an agent reports is reported to the owner once, and its terminations are kept", func(t *testing.T) {
		s := started(t, "agent")
		s.pod.OwnerReferences = owned(t).pod.OwnerReferences
		inLab(t, func(l *lab) {
			r := l.replica("a")
			const sentence = "gpuslice terminated python (pid 214, 9.1Gi) in trainer: 9.1Gi of 4Gi on gpu0 for 3.2s; use less memory"
			l.agent(s, "1", s.node.Name, "GPUSliceNearLimit", "trainer uses 3.9Gi of its 4Gi slice on gpu0")
			l.agent(s, "2", s.node.Name, "GPUSliceTerminated", sentence)
			l.agent(s, "3", "l4-9", "GPUSliceTerminated", "gpuslice terminated python (pid 1, 9Gi): the agent of another node")
			reported := []string{"Job/nightly GPUSliceNearLimit", "Job/nightly GPUSliceTerminated"}
			byAgents := []string{"Pod/train GPUSliceNearLimit", "Pod/train GPUSliceTerminated", "Pod/train GPUSliceTerminated"}
			got := slices.DeleteFunc(l.events(), func(e string) bool { return strings.HasSuffix(e, "Degraded") })
			if diff := cmp.Diff(append(reported, byAgents...), got); diff != "" {
				t.Errorf("events (-want +got)\n%s", diff)
			}
			if got := l.observed().Terminations; len(got) != 1 || got[0].Text != sentence {
				t.Errorf("terminations %+v", got)
			}
			r.stop()
			defer l.replica("b").stop()
			got = slices.DeleteFunc(l.events(), func(e string) bool { return strings.HasSuffix(e, "Degraded") })
			if diff := cmp.Diff(append(reported, byAgents...), got); diff != "" {
				t.Errorf("events under another leader (-want +got)\n%s", diff)
			}
		}, s.pod, s.node)
	})
	t.Run("a tenant who makes terminations up gets few Events, and none on what owns no pods", func(t *testing.T) {
		s := owned(t)
		s.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "l4-1", UID: "l4-1", Controller: new(true)}}
		inLab(t, func(l *lab) {
			defer l.replica("a").stop()
			for i := range 3 * maxTerminations {
				s.trainer().LastTerminationState = terminated(1, "Error", fmt.Sprintf("gpuslice terminated nothing %d", i))
				s.trainer().LastTerminationState.Terminated.FinishedAt = metav1.Now()
				l.status(s)
			}
			got := l.events()
			if len(got) != maxTerminations || got[0] != "Pod/train GPUSliceTerminated" || got[len(got)-1] != got[0] {
				t.Errorf("events %q", got)
			}
		}, s.pod, s.node)
	})
	t.Run("the observation keeps the last, whatever they were read from", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			defer l.replica("a").stop()
			sentence := func(pid int) string {
				return fmt.Sprintf("gpuslice terminated python (pid %d, 9.1Gi) in trainer: 9.1Gi of 4Gi on gpu0 for 3.2s", pid)
			}
			l.kubelet(s, time.Now(), "(2 older messages are in the guard's log) "+sentence(1)+"; "+sentence(2))
			s.guard().LastTerminationState = terminated(0, "Completed", sentence(2)+"; "+sentence(3)+"\n{\"undelivered\":[]}\n")
			s.guard().LastTerminationState.Terminated.FinishedAt = metav1.Now()
			l.status(s)
			var got []string
			for _, termination := range l.observed().Terminations {
				got = append(got, termination.Text)
			}
			if diff := cmp.Diff([]string{sentence(1), sentence(2), sentence(3)}, got); diff != "" {
				t.Errorf("terminations (-want +got)\n%s", diff)
			}
			for i := range 3 * maxTerminations {
				s.guard().LastTerminationState.Terminated.Message = sentence(100 + i)
				s.guard().LastTerminationState.Terminated.FinishedAt = metav1.Now()
				l.status(s)
			}
			last := l.observed().Terminations
			if len(last) != maxTerminations || last[maxTerminations-1].Text != sentence(99+3*maxTerminations) {
				t.Errorf("terminations %v", last)
			}
			l.patches()
			l.pass(time.Minute)
			s.guard().RestartCount = 1 // reconciled again
			l.status(s)
			l.patches()
			l.status(s)
			if n := l.patches(); n > 0 {
				t.Errorf("the same was written again, %d times", n)
			}
		}, s.pod, s.node)
	})
}
