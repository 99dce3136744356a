package installed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
)

// ErrUnanswered is returned if nothing answers a request for a report.
var ErrUnanswered = errors.New("the webhook does not answer")

// maxReport bounds the report that is read.
const maxReport = 1 << 20

// Report requests a report on a namespace from the webhook, by a dry-run of a pod: that takes no right but to create
// pods.
func Report(ctx context.Context, client kubernetes.Interface, namespace, kind string) (json.RawMessage, error) {
	_, err := client.CoreV1().Pods(namespace).Create(ctx, reportRequest(kind), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return readReport(err, namespace, kind)
}

// reportRequest is a pod that is never created.
func reportRequest(kind string) *corev1.Pod {
	pod := RestrictedPod("gpuslice-"+kind+"-", "question", "question")
	pod.Annotations = map[string]string{api.AnnotationReport: kind}
	return pod
}

// RestrictedPod is a pod with one container that Pod Security admits at every level.
func RestrictedPod(prefix, container, image string) *corev1.Pod {
	yes, no := true, false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: container, Image: image, SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
}

// readReport reads the report in the denial that answers a request for one.
func readReport(err error, namespace, kind string) (json.RawMessage, error) {
	if err == nil {
		return nil, fmt.Errorf("%w: no webhook answered in namespace %s; either gpuslice is not installed, or the namespace is exempt or bypassed (gpuslice bypass --list)",
			ErrUnanswered, namespace)
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return nil, fmt.Errorf("create a dry-run pod in namespace %s: %w", namespace, err)
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Type != budgets.CauseOf(kind) || len(cause.Message) > maxReport {
				continue
			}
			if !json.Valid([]byte(cause.Message)) {
				return nil, fmt.Errorf("%w: the answer cannot be read", ErrUnanswered)
			}
			return json.RawMessage(cause.Message), nil
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrUnanswered, err)
}
