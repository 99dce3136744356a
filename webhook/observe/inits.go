package observe

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/promise"
)

// ReasonNeedsPID1 is the reason of the Events about a container whose init ended because it is not PID 1.
const ReasonNeedsPID1 = "GPUSliceNeedsPID1"

// reportInits writes an Event about each container whose init ended because it is not PID 1, once.
func (s *session) reportInits(ctx context.Context, key string, pod *corev1.Pod, promise *promise.Promise) error {
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		end := lastTermination(status)
		if !neededPID1(promise, end) || time.Since(end.FinishedAt.Time) >= terminationTTL {
			continue
		}
		sentence := fmt.Sprintf("container %q ended with exit code %d, %s", status.Name, end.ExitCode, pid1Remedy)
		if !s.isDue(key, pod, sentence) {
			continue
		}
		about := append([]corev1.ObjectReference{podReference(pod)}, s.writer.owners.Of(ctx, pod)...)
		if err := s.writer.writeOnce(ctx, s.options.Client, about, pod, ReasonNeedsPID1, sentence); err != nil {
			return err
		}
		s.markReported(key, sentence)
	}
	return nil
}
