package cluster

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/sizing"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
	"github.com/gpuslice/gpuslice/test/clustertest"
)

// recommend writes texts as the leader does, from a part on.
func recommend(t *testing.T, client *fake.Clientset, from int, texts []string) {
	t.Helper()
	for n, text := range texts {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(advice.NamePrefix, from+n),
			Namespace: system, Labels: map[string]string{advice.Label: "true"},
			ResourceVersion: fmt.Sprint(time.Now().UnixNano())}, Data: map[string]string{advice.Key: text}}
		_, err := client.CoreV1().ConfigMaps(system).Create(t.Context(), m, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = client.CoreV1().ConfigMaps(system).Update(t.Context(), m, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	clustertest.Settle()
}

// recommendedNow are sizes of so many workloads in two namespaces.
func recommendedNow(t *testing.T, n int, size api.MiB) []string {
	t.Helper()
	var all []advice.Recommendation
	for i := range n {
		for _, ns := range []string{"team-a", "team-b"} {
			all = append(all, advice.Recommendation{Container: advice.Container{Namespace: ns,
				Owner: advice.Owner{Kind: "Job", Name: fmt.Sprint("train-", i)}, Container: "c"},
				Verdict: sizing.Right, Sizes: [len(advice.Coverages)]api.MiB{size, size, size}})
		}
	}
	texts, _, err := advice.Encode(time.Now(), all)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// sizeOf is what is recommended for the first workload of a namespace; 0: nothing.
func sizeOf(t *testing.T, r *replica, namespace string) api.MiB {
	t.Helper()
	in, err := r.Input(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	for key, found := range in.Recommended {
		if key.Namespace != namespace {
			t.Errorf("a decision of %s sees what is recommended for %s", namespace, key.Namespace)
		}
		if key.Name == "train-0" {
			return found.Sizes[0]
		}
	}
	return 0
}

func TestAdvice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(clustertest.Namespace("team-a", nil),
			clustertest.Namespace("team-b", nil), clustertest.Namespace("team-c", nil))
		r := start(t, client)
		defer r.end()
		want := func(when string, a, b, c api.MiB) {
			t.Helper()
			for ns, size := range map[string]api.MiB{"team-a": a, "team-b": b, "team-c": c} {
				if got := sizeOf(t, r, ns); got != size {
					t.Errorf("%s: %s has %d, want %d", when, ns, got, size)
				}
			}
		}
		want("nothing was written", 0, 0, 0)
		recommend(t, client, 0, recommendedNow(t, 1, 100))
		want("written", 100, 100, 0)
		if got := r.StateReport().SizesWritten; time.Since(got) > time.Minute {
			t.Errorf("the state report has %s", got)
		}
		recommend(t, client, 0, []string{"{"})
		want("written over by what cannot be read", 100, 100, 0)
		time.Sleep(time.Second)
		texts := recommendedNow(t, 5000, 300)
		if len(texts) < 2 {
			t.Fatalf("%d texts", len(texts))
		}
		recommend(t, client, 0, texts[:1])
		want("written by half", 100, 100, 0)
		recommend(t, client, 1, texts[1:])
		want("written in whole", 300, 300, 0)
		time.Sleep(23 * time.Hour)
		want("nearly a day later", 300, 300, 0)
		time.Sleep(time.Hour)
		want("a day later", 0, 0, 0)
	})
}
