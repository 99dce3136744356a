package observe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// status returns the status of a container of the pod; nil if the kubelet has written none.
func (e *evaluation) status(name string) *corev1.ContainerStatus {
	is := func(s *corev1.ContainerStatus) bool { return s.Name == name }
	return cmp.Or(find(e.pod.Status.InitContainerStatuses, is), find(e.pod.Status.ContainerStatuses, is))
}

func (e *evaluation) guardStatus() *corev1.ContainerStatus { return e.status(limits.GuardContainer) }

// spec returns a container of the pod; nil if it has none of that name.
func (e *evaluation) spec(name string) *corev1.Container {
	is := func(c *corev1.Container) bool { return c.Name == name }
	return cmp.Or(find(e.pod.Spec.InitContainers, is), find(e.pod.Spec.Containers, is))
}

// find returns the first element that is so; nil: there is none.
func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// everRan reports whether a container with a slice runs or has run.
func (e *evaluation) everRan() bool {
	return e.anySlice(func(s *corev1.ContainerStatus) bool {
		return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
	})
}

// running reports whether a container with a slice runs.
func (e *evaluation) running() bool {
	return e.anySlice(func(s *corev1.ContainerStatus) bool { return s.State.Running != nil })
}

// anySlice reports whether something is so of a container with a slice that has a status.
func (e *evaluation) anySlice(is func(*corev1.ContainerStatus) bool) bool {
	return slices.ContainsFunc(e.promise.Containers, func(c promise.Container) bool {
		s := e.status(c.Name)
		return s != nil && is(s)
	})
}

// isGuarding reports whether the guard runs and has sampled the devices, which its startup probe waits for.
func isGuarding(s *corev1.ContainerStatus) bool {
	return s != nil && s.State.Running != nil && s.Started != nil && *s.Started
}

// lastTermination returns the termination of the container's current or last run; nil if there is none.
func lastTermination(s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	switch {
	case s == nil:
		return nil
	case s.State.Terminated != nil:
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

// givesUpWithin is how soon an init exits that is not PID 1.
const givesUpWithin = 5 * time.Second

const pid1Remedy = "as an init does that is not PID 1, such as s6 or runit: run gpuslice-agent on the nodes, or list the image in guard.initImages of the policy, " +
	"and create the pod again"

// neededPID1 reports whether a run in the process namespace that the pod shares with the guard exited as an init does:
// s6-overlay with 100, runit with 111.
func neededPID1(promised *promise.Promise, end *corev1.ContainerStateTerminated) bool {
	return promised.Guard != nil && promised.Guard.Shares && end != nil && (end.ExitCode == 100 || end.ExitCode == 111) &&
		end.FinishedAt.Sub(end.StartedAt.Time) <= givesUpWithin
}

// failure describes how a container's last run failed; "" if it succeeded.
func (e *evaluation) failure(container string) string {
	end := lastTermination(e.status(container))
	switch {
	case end == nil || end.ExitCode == 0:
		return ""
	case neededPID1(e.promise, end):
		return describeTermination(end) + ", " + pid1Remedy
	}
	return describeTermination(end)
}

// describeTermination describes the end of a run. OOMKilled is explained: it is about the memory of the host, and many take
// it for the GPU's.
func describeTermination(end *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", end.ExitCode)
	switch {
	case end.Reason == "OOMKilled":
		text += ", OOMKilled: over a limit of host memory"
	case end.Reason != "" && end.Reason != "Error" && end.Reason != "Completed":
		text += ", " + shorten.Line(end.Reason, maxQuote)
	}
	if end.Message != "" {
		text += ": " + shorten.Line(end.Message, maxQuote)
	}
	return text
}
