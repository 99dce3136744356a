package standing

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
	"github.com/gpuslice/gpuslice/webhook/budgets"
)

// ErrUnanswered says that nobody told how the quota stands.
var ErrUnanswered = errors.New("how the quota stands cannot be told")

// maxAnswer bounds the report that is read.
const maxAnswer = 1 << 20

// Ask asks the webhook how the quota of a namespace stands, by a dry-run of a pod that is a question.
func Ask(ctx context.Context, client kubernetes.Interface, namespace string) (Budget, error) {
	_, err := client.CoreV1().Pods(namespace).Create(ctx, question(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	report, err := answerOf(err, namespace)
	if err != nil {
		return Budget{}, err
	}
	pods, err := visible(ctx, client, namespace)
	if err != nil {
		return Budget{}, err
	}
	return Budget{Budget: report.Budget, Namespaces: []string{namespace}, Policy: report.Policy, Counted: report.Counted,
		Figures: report.Figures, More: report.More, Holders: holders(pods, nil)}, nil
}

// question is a pod that Pod Security lets pass at every level, and that never comes to be.
func question() *corev1.Pod {
	yes, no := true, false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "gpuslice-quota-", Annotations: map[string]string{api.AnnotationReport: api.ReportQuota}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no,
			SecurityContext:              &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "question", Image: "question", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
}

// answerOf reads the report in the refusal that answers a question.
func answerOf(err error, namespace string) (report budgets.Report, _ error) {
	if err == nil {
		return report, fmt.Errorf("%w: no webhook answered in namespace %s; either gpuslice is not installed, or the namespace is exempt or bypassed (gpuslice bypass --list)", ErrUnanswered, namespace)
	}
	said, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return report, fmt.Errorf("ask in namespace %s: %w", namespace, err)
	}
	if details := said.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Type != budgets.CauseReport || len(cause.Message) > maxAnswer {
				continue
			}
			if err := json.Unmarshal([]byte(cause.Message), &report); err != nil {
				return report, fmt.Errorf("%w: the answer cannot be read: %w", ErrUnanswered, err)
			}
			return report, nil
		}
	}
	return report, fmt.Errorf("%w: %w", ErrUnanswered, err)
}
