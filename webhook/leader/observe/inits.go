package observe

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/promise"
)

// ReasonNeedsPID1 is the reason of the Events about a container whose init ended because it is not PID 1.
const ReasonNeedsPID1 = "GPUSliceNeedsPID1"

// initSentences returns a sentence about each container whose init ended because it is not PID 1.
func initSentences(pod *corev1.Pod, promise *promise.Promise) (out []sentence) {
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if end := lastTermination(status); neededPID1(promise, end) {
			text := fmt.Sprintf("container %q ended with exit code %d, %s", status.Name, end.ExitCode, pid1Remedy)
			out = append(out, sentence{ReasonNeedsPID1, text, end.FinishedAt.Time, false})
		}
	}
	return out
}
