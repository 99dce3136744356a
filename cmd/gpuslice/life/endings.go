package life

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// ends says how containers ended that did not end well, and what the guard did.
func (l *Life) ends(f *Facts) {
	for _, s := range badEnds(f.Pod) {
		l.why("%s", ending(s))
	}
	said := slices.Clone(f.GuardSaid)
	for _, e := range l.Told {
		if _, sentence, ends := strings.Cut(e.Text, guardEnded); ends && e.Ours {
			said = append(said, guardEnded+sentence)
		}
	}
	slices.Sort(said)
	for _, sentence := range slices.Compact(said) {
		l.why("%s", sentence)
	}
}

// guardEnded begins the guard's sentence about an ending.
const guardEnded = "gpuslice terminated "

// endings are the sentences about endings in the guard's log, which is a JSON object a line.
func endings(log []byte) (said []string) {
	for line := range bytes.Lines(log) {
		var entry struct{ Message string }
		if json.Unmarshal(line, &entry) == nil && strings.HasPrefix(entry.Message, guardEnded) {
			said = append(said, entry.Message)
		}
	}
	return said
}

// badEnds are the containers whose last run did not end well.
func badEnds(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.DeleteFunc(statuses(p), func(s corev1.ContainerStatus) bool {
		end := lastEnd(s)
		return end == nil || end.ExitCode == 0
	})
}

func lastEnd(s corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if s.State.Terminated != nil {
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

// ending is a sentence about a container that did not end well.
func ending(s corev1.ContainerStatus) string {
	end := lastEnd(s)
	text := fmt.Sprintf("%s ended with exit code %d", s.Name, end.ExitCode)
	switch {
	case s.Name == limits.CheckContainer:
		text = "the node is not what was planned on"
	case end.Reason == "OOMKilled":
		text += " (OOMKilled: past its memory on the host, which is not the GPU's)"
	case end.Reason != "" && end.Reason != "Error":
		text += " (" + end.Reason + ")"
	}
	if s.RestartCount > 0 {
		text += fmt.Sprintf(", and was started again %d times", s.RestartCount)
	}
	if end.Message != "" {
		text += ": " + strings.TrimSpace(end.Message)
	}
	return text
}
