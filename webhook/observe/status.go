package observe

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// status is what the kubelet says of a container of the pod; nil: nothing yet.
func (j *evaluation) status(name string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{j.pod.Status.InitContainerStatuses, j.pod.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

func (j *evaluation) guardStatus() *corev1.ContainerStatus { return j.status(limits.GuardContainer) }

// spec is a container of the pod; nil: it has none of that name.
func (j *evaluation) spec(name string) *corev1.Container {
	for _, list := range [][]corev1.Container{j.pod.Spec.InitContainers, j.pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// everRan says that a container with a slice runs, or did.
func (j *evaluation) everRan() bool {
	for i := range j.promise.Containers {
		if s := j.status(j.promise.Containers[i].Name); s != nil && (s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil) {
			return true
		}
	}
	return false
}

// runs says that a container with a slice runs.
func (j *evaluation) running() bool {
	for i := range j.promise.Containers {
		if s := j.status(j.promise.Containers[i].Name); s != nil && s.State.Running != nil {
			return true
		}
	}
	return false
}

// guards says that the guard runs and has looked at the devices: its startup probe asks for that.
func isGuarding(s *corev1.ContainerStatus) bool {
	return s != nil && s.State.Running != nil && s.Started != nil && *s.Started
}

// lastEnd is how the present or the last run of a container ended; nil: none has.
func lastTermination(s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	switch {
	case s == nil:
		return nil
	case s.State.Terminated != nil:
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

// badEnd is how a container's last run ended, "" where it ended well.
func failure(s *corev1.ContainerStatus) string {
	if end := lastTermination(s); end != nil && end.ExitCode != 0 {
		return describeTermination(end)
	}
	return ""
}

// describe words the end of a run. OOMKilled is spelt out: it is about the memory of the host, which many take for the
// GPU's.
func describeTermination(end *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", end.ExitCode)
	switch {
	case end.Reason == "OOMKilled":
		text += ", OOMKilled: past its memory on the host"
	case end.Reason != "" && end.Reason != "Error" && end.Reason != "Completed":
		text += ", " + sanitize(end.Reason, maxQuote)
	}
	if end.Message != "" {
		text += ": " + sanitize(end.Message, maxQuote)
	}
	return text
}

// plain makes one line of a text that comes from elsewhere: valid UTF-8, no control characters, at most that many
// bytes.
func sanitize(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, strings.TrimSpace(text))
	if len(text) <= most {
		return text
	}
	const end = "..."
	return strings.ToValidUTF8(text[:most-len(end)], "") + end
}
