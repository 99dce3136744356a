package apiserver

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/test/corpus"
)

// TestPublicPods sends the pods that people publish through the server with and without a policy: none ends in an
// internal error, and none that the server took before is invalid after.
func TestPublicPods(t *testing.T) {
	i := need(t)
	setUpReapply(t, i, "corpus-plain")
	if err := i.Policy(t.Context(), "corpus-plain",
		[]byte("apiVersion: gpuslice.dev/v1\nmode: off\nnamespaces: {names: [corpus-plain]}\n")); err != nil {
		t.Fatal(err)
	}
	for mode, namespace := range map[string]string{"opt-in": "corpus-opt-in", "transparent": "corpus-transparent"} {
		if err := i.Server.Namespace(t.Context(), namespace, nil); err != nil {
			t.Fatal(err)
		}
		document := "apiVersion: gpuslice.dev/v1\nmode: " + mode +
			"\nstrategies: [time-slicing, exclusive]\ndefaultSlice: {memory: 4Gi}\naccept: [fractional-quantity]\nnamespaces: {names: [" +
			namespace + "]}\n"
		if err := i.Policy(t.Context(), namespace, []byte(document)); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	pods, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	if len(pods) < 100 {
		t.Fatalf("%d public pods: the corpus is not there", len(pods))
	}
	outcomes := map[string]int{}
	for _, pod := range pods {
		plain := podFrom(t, pod)
		plain.SetNamespace("corpus-plain")
		_, before := i.Apply.Create(t.Context(), plain, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		for _, namespace := range []string{"corpus-opt-in", "corpus-transparent"} {
			u := podFrom(t, pod)
			u.SetNamespace(namespace)
			_, after := i.Apply.Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			outcomes[namespace+" "+kindOf(after)]++
			if apierrors.IsInternalError(after) || after != nil && strings.Contains(after.Error(), "panic") {
				t.Errorf("%s in %s: %v", pod.Name, namespace, after)
			}
			if before == nil && apierrors.IsInvalid(after) {
				t.Errorf("%s in %s: the server took it before and finds it invalid after: %v", pod.Name, namespace, after)
			}
		}
	}
	t.Logf("%d pods: %v", len(pods), outcomes)
}

func podFrom(t *testing.T, pod corpus.Pod) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(pod.YAML, &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func kindOf(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return "created"
	case errors.As(err, &status) && strings.Contains(err.Error(), "gpuslice.dev\" denied"):
		return "denied by us"
	}
	return "denied by the server"
}
