package explain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gpuslice/gpuslice/policies/sizing/advice"
)

// recommended lists the size for each container of the pod's workload that has a recommendation.
func recommended(book *advice.Book, pod *corev1.Pod, now time.Time) (found []string) {
	owner := advice.OwnerOf(&pod.ObjectMeta)
	for _, c := range pod.Spec.Containers {
		r := book.Of(pod.Namespace)[advice.Container{Namespace: pod.Namespace, Owner: owner, Container: c.Name}]
		if r == nil {
			continue
		}
		text := fmt.Sprintf("%s for %s", r.Verdict, duration.HumanDuration(now.Sub(r.Since)))
		if size, _ := r.Size(advice.DefaultCoverage); size > 0 {
			text = fmt.Sprintf("%s covers %d%%, %s", size, advice.DefaultCoverage, text)
		}
		found = append(found, fmt.Sprintf("%s: %s, by %.0f hours of history", c.Name, text, r.Hours))
	}
	return found
}
