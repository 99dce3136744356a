package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// terminations gives the reasons for which containers failed, and the guard's terminations.
func (l *status) terminations(f *facts) {
	for _, s := range failures(f.pod) {
		if end := lastTermination(s); s.State.Waiting != nil && end.Message != "" &&
			strings.Contains(s.State.Waiting.Message, strings.TrimSpace(end.Message)) {
			continue // why it waits
		}
		l.because("%s", failure(s))
	}
	sentences := slices.Clone(f.guardLog)
	for _, e := range l.Events {
		if _, sentence, ends := strings.Cut(e.Text, guardTerminated); ends && e.Ours {
			sentences = append(sentences, guardTerminated+sentence)
		}
	}
	slices.Sort(sentences)
	for _, sentence := range slices.Compact(sentences) {
		l.because("%s", sentence)
	}
}

// guardTerminated begins the guard's sentence about a termination.
const guardTerminated = "gpuslice terminated "

// guardTerminations are the sentences about terminations in the guard's log, which is a JSON object a line.
func guardTerminations(log []byte) (sentences []string) {
	for line := range bytes.Lines(log) {
		var entry struct{ Message string }
		if json.Unmarshal(line, &entry) == nil && strings.HasPrefix(entry.Message, guardTerminated) {
			sentences = append(sentences, entry.Message)
		}
	}
	return sentences
}

// failures are the containers whose last run failed.
func failures(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.DeleteFunc(statuses(p), func(s corev1.ContainerStatus) bool {
		end := lastTermination(s)
		return end == nil || end.ExitCode == 0
	})
}

func lastTermination(s corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

// failure is a sentence about a container whose last run failed.
func failure(s corev1.ContainerStatus) string {
	end := lastTermination(s)
	text := fmt.Sprintf("%s exited with code %d", s.Name, end.ExitCode)
	switch {
	case s.Name == limits.CheckContainer:
		text = "the node does not match the plan"
	case end.Reason == "OOMKilled":
		text += " (OOMKilled: over a limit of host memory, not of GPU memory)"
	case end.Reason != "" && end.Reason != "Error":
		text += " (" + end.Reason + ")"
	}
	if s.RestartCount > 0 {
		text += fmt.Sprintf(", and was restarted %d times", s.RestartCount)
	}
	if end.Message != "" {
		text += ": " + strings.TrimSpace(end.Message)
	}
	return text
}
