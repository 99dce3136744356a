package quota

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/budgets"
)

// errUnanswered is returned if nothing answers.
var errUnanswered = errors.New("the quota is unknown")

// maxAnswer bounds the report that is read.
const maxAnswer = 1 << 20

// ask asks the webhook for the quota of a namespace, by a dry-run of a pod that requests a report.
func ask(ctx context.Context, client kubernetes.Interface, namespace string) (Budget, error) {
	_, err := client.CoreV1().Pods(namespace).Create(ctx, reportRequest(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	report, err := reportOf(err, namespace)
	if err != nil {
		return Budget{}, err
	}
	pods, err := readable(ctx, client, namespace)
	if err != nil {
		return Budget{}, err
	}
	claims, _ := installed.Claims(ctx, client, namespace) // what may not be read counts as a GPU
	input := func(pod *corev1.Pod) policies.Input {
		return claims.Of(policies.Input{Namespace: api.Namespace{Name: namespace}, Policy: &config.Policy{}}, pod)
	}
	return Budget{Budget: report.Budget, Namespaces: []string{namespace}, Policy: report.Policy, Counted: report.Counted,
		Figures: report.Figures, More: report.More, Holders: holders(promise.Keys{}, pods, input)}, nil
}

// reportRequest is a pod that Pod Security admits at every level, and that is never created.
func reportRequest() *corev1.Pod {
	yes, no := true, false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "gpuslice-quota-", Annotations: map[string]string{api.AnnotationReport: budgets.ReportQuota}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no,
			SecurityContext:              &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "question", Image: "question", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
}

// reportOf reads the report in the denial that answers a request for one.
func reportOf(err error, namespace string) (report budgets.Report, _ error) {
	if err == nil {
		return report, fmt.Errorf("%w: no webhook answered in namespace %s; either gpuslice is not installed, or the namespace is exempt or bypassed (gpuslice bypass --list)", errUnanswered, namespace)
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return report, fmt.Errorf("ask in namespace %s: %w", namespace, err)
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Type != budgets.CauseReport || len(cause.Message) > maxAnswer {
				continue
			}
			if err := json.Unmarshal([]byte(cause.Message), &report); err != nil {
				return report, fmt.Errorf("%w: the answer cannot be read: %w", errUnanswered, err)
			}
			return report, nil
		}
	}
	return report, fmt.Errorf("%w: %w", errUnanswered, err)
}

// readable are the living pods of a namespace; none if they may not be read.
func readable(ctx context.Context, client kubernetes.Interface, namespace string) ([]corev1.Pod, error) {
	pods, err := installed.LivingPods(ctx, client, []string{namespace})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return pods, err
}
