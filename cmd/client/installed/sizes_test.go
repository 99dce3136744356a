package installed

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/sizing"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
)

// TestSizes reads recommended sizes with the right to read gpuslice's namespace, and with that to create pods alone.
func TestSizes(t *testing.T) {
	t.Parallel()
	written := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	of := advice.Container{Namespace: "team-a", Owner: advice.Owner{Kind: "Job", Name: "train"}, Container: "main"}
	texts, _, err := advice.Encode(written, []advice.Recommendation{{Container: of, Verdict: sizing.Right}})
	if err != nil {
		t.Fatal(err)
	}
	document := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: advice.NamePrefix + "0",
		Labels: map[string]string{advice.Label: "true"}},
		Data: map[string]string{advice.Key: texts[0]}}
	for name, tt := range map[string]struct {
		forbidden []string
		namespace string
		age       time.Duration
		found     bool
		fails     bool
	}{
		"an administrator":                     {nil, "", time.Hour, true, false},
		"an administrator, a day later":        {nil, "", 25 * time.Hour, false, false},
		"a tenant":                             {[]string{"configmaps"}, "team-a", time.Hour, true, false},
		"a tenant, of all namespaces":          {[]string{"configmaps"}, "", time.Hour, false, true},
		"a tenant who may not create pods too": {[]string{"configmaps", "pods"}, "team-a", time.Hour, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset(document.DeepCopy())
			client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, denial("sizes", metav1.StatusCause{Type: budgets.CauseOf(budgets.ReportSizes), Message: texts[0]})
			})
			for _, resource := range tt.forbidden {
				client.PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
				})
			}
			book, err := Sizes(t.Context(), client, api.SystemNamespace, tt.namespace, written.Add(tt.age))
			if (err != nil) != tt.fails || (book.Of("team-a")[of] != nil) != tt.found {
				t.Errorf("%v, %v", book, err)
			}
		})
	}
}
