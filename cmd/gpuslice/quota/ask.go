package quota

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/budget"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
)

// ask requests the quota of a namespace from the webhook.
func ask(ctx context.Context, client kubernetes.Interface, namespace string) (budget.Budget, error) {
	text, err := installed.Report(ctx, client, namespace, budgets.ReportQuota)
	if err != nil {
		return budget.Budget{}, fmt.Errorf("the quota is unknown: %w", err)
	}
	var report budgets.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return budget.Budget{}, fmt.Errorf("the quota is unknown: read the answer: %w", err)
	}
	pods, err := readable(ctx, client, namespace)
	if err != nil {
		return budget.Budget{}, err
	}
	claims, _ := installed.Claims(ctx, client, namespace) // an unreadable claim counts as a GPU
	ofPod := func(pod *corev1.Pod) accounting.PodClaims {
		return claims.GPUClaims(namespace, pod)
	}
	held, unknown := budget.Holders(promise.Keys{}, pods, ofPod)
	return budget.Budget{Budget: report.Budget, Namespaces: []string{namespace}, Policy: report.Policy, Counted: report.Counted,
		Figures: report.Figures, More: report.More, Holders: held, MemoryUnknown: unknown}, nil
}

// readable are the living pods of a namespace; none if they may not be read.
func readable(ctx context.Context, client kubernetes.Interface, namespace string) ([]corev1.Pod, error) {
	pods, err := installed.LivingPods(ctx, client, []string{namespace})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return pods, err
}
