package standing

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/budgets"
)

func refusal(message string, causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: 403, Message: message, Details: &metav1.StatusDetails{Causes: causes}}}
}

func TestTheAnswerIsReadFromTheRefusal(t *testing.T) {
	report, err := answerOf(refusal("quota ...", metav1.StatusCause{Type: "quota", Message: "other"},
		metav1.StatusCause{Type: budgets.CauseReport, Message: `{"namespace":"a","policy":"p","budget":"namespace/a","counted":true,"figures":[{"quota":"a","dimension":"slices","limit":4,"used":1}]}`}), "a")
	if err != nil || report.Budget != "namespace/a" || len(report.Figures) != 1 || report.Figures[0].Limit != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestWhoDoesNotAnswerIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"nobody":               {nil, "exempt or bypassed"},
		"another's refusal":    {refusal("admission webhook \"others.example.com\" denied the request"), "others.example.com"},
		"an answer out of use": {refusal("", metav1.StatusCause{Type: budgets.CauseReport, Message: "{"}), "cannot be read"},
		"an answer too long":   {refusal("long", metav1.StatusCause{Type: budgets.CauseReport, Message: strings.Repeat("x", maxAnswer+1)}), "long"},
	} {
		if _, err := answerOf(tt.err, "team-a"); !errors.Is(err, ErrUnanswered) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheLargestHoldersComeFirst(t *testing.T) {
	var pods []corev1.Pod
	for i := range maxHolders + 3 {
		pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("p", i)}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(i), resource.DecimalSI)}}}}}})
	}
	got := holders(pods, nil)
	if len(got) != maxHolders || got[0].Pod != "p7" || got[0].GPUs != 7 || got[0].Promised || got[4].Pod != "p3" {
		t.Errorf("%+v", got)
	}
}

func TestASlicedPodHoldsItsSlice(t *testing.T) {
	promise := promise.Promise{Version: promise.Version, Namespace: "a", Strategy: "mps", Charge: quota.Charge{Memory: 4096, Slices: 1}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", Annotations: map[string]string{api.AnnotationPromise: promise.Encode()}}}
	want := Holder{Namespace: "a", Pod: "p", Memory: 4 << 30, Slices: 1, Promised: true}
	if got := holders([]corev1.Pod{pod}, nil); len(got) != 1 || got[0] != want {
		t.Errorf("%+v", got)
	}
	pod.Namespace = "b" // a promise of another namespace's
	if got := holders([]corev1.Pod{pod}, nil); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
