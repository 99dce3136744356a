package apiserver

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/sizing"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
)

// TestRecommendedSizes: who may only edit a namespace sees the sizes that are recommended there, as administrators do.
func TestRecommendedSizes(t *testing.T) {
	t.Run("are shown to a tenant", func(t *testing.T) {
		i := need(t)
		const namespace = "sizes-tenant"
		setUpReapply(t, i, namespace)
		if _, err := i.Apply.Create(t.Context(), podOf(t, "train", namespace, manifests["label"]), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		of := advice.Container{Namespace: namespace, Owner: advice.Owner{Kind: "Pod", Name: "train"}, Container: "a"}
		size := advice.Recommendation{Container: of, Verdict: sizing.OverRequested, Since: time.Now(), Hours: 200, Slice: 4 << 10,
			Sizes: [len(advice.Coverages)]api.MiB{2048, 3072, 3584}}
		if err := i.Recommend(t.Context(), []advice.Recommendation{size}); err != nil {
			t.Fatal(err)
		}
		for _, who := range []string{i.Server.Kubeconfig, editorsFile(t, i, namespace)} {
			command(t, who, "explain", "train", "-n", namespace).want(t, 0, "a: 3Gi covers 95%, over-requested for", "by 200 hours of history")
			command(t, who, "list", "-n", namespace, "-o", "wide").want(t, 0, "3Gi over-requested")
		}
	})
}
