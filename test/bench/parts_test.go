package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// conditioned is the part that has a match condition more, that of pods without the label.
const conditioned = "nothing, but a condition"

// parts are what a slice's pod is created without, to see what each costs.
var parts = []struct {
	name  string
	leave func(pod *corev1.Pod)
}{
	{"nothing", func(*corev1.Pod) {}},
	{"the promise", func(pod *corev1.Pod) { delete(pod.Annotations, api.AnnotationPromise) }},
	{"the sidecar", func(pod *corev1.Pod) { pod.Spec.InitContainers = pod.Spec.InitContainers[:1] }},
	{"sidecar and check", func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }},
	{"all but annotations", onlyAnnotations},
	{conditioned, func(*corev1.Pod) {}},
	{"nothing, once more", func(*corev1.Pod) {}}, // how far two measurements of the same are apart
}

func onlyAnnotations(pod *corev1.Pod) {
	pod.Spec.InitContainers, pod.Spec.Affinity, pod.Spec.Volumes, pod.Spec.Containers[0].Env = nil, nil, pod.Spec.Volumes[:1], nil
}

// TestPrintPartsOfASlice prints the CPU time that a create of a slice's pod takes of the API server, without one part after the other,
// and with a match condition. The patch is fixed, and a validating webhook follows that only answers.
func TestPrintPartsOfASlice(t *testing.T) {
	server := cluster.ForTest(t, cluster.Options{})
	pid, err := server.PID("kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	i := &install.Installation{Server: server}
	for k, p := range parts {
		namespace := partNamespace(k)
		if err := server.Namespace(t.Context(), namespace, nil); err != nil {
			t.Fatal(err)
		}
		register(t, server, namespace, patchWithout(t, p.leave))
		registerCheck(t, server, namespace)
		if p.name == conditioned {
			addCondition(t, server, namespace)
		}
		_, _ = load{namespace: namespace, pod: pod, sliced: true, flight: 10, n: 50}.create(t, i)
	}
	costs := make([]cost, len(parts))
	const flight, n = 10, 400
	for range rounds {
		for k := range parts {
			before := cpuOf(t, pid)
			times, _ := load{namespace: partNamespace(k), pod: pod, sliced: true, flight: flight, n: n}.create(t, i)
			costs[k].server += cpuOf(t, pid) - before
			costs[k].times = append(costs[k].times, times...)
			remove(t, i, partNamespace(k))
		}
	}
	fmt.Printf("%-24s %10s %14s\n", "without", "p50", "API server CPU")
	for k, p := range parts {
		fmt.Printf("%-24s %10s %14s\n", p.name, costs[k].p50().Round(10*time.Microsecond), costs[k].each(costs[k].server))
	}
}

// addCondition gives the webhook of a namespace our condition.
func addCondition(t *testing.T, server *cluster.APIServer, namespace string) {
	t.Helper()
	text, err := deploy.Files.ReadFile("50-webhooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var ours admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&ours); err != nil {
		t.Fatal(err)
	}
	configurations := server.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	live, err := configurations.Get(t.Context(), "answers-"+namespace, metav1.GetOptions{})
	if err == nil {
		live.Webhooks[0].MatchConditions = ours.Webhooks[0].MatchConditions
		_, err = configurations.Update(t.Context(), live, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func partNamespace(k int) string { return "part-" + strconv.Itoa(k) }

// patchWithout answers each pod with what makes it the pod of a slice that lacks a part.
func patchWithout(t *testing.T, leave func(*corev1.Pod)) func(*admissionv1.AdmissionRequest) []byte {
	t.Helper()
	in, err := typical()
	if err != nil {
		t.Fatal(err)
	}
	return fixed(func(r *admissionv1.AdmissionRequest) []byte {
		raw, _, err := rawpod.Decode(r.Object.Raw)
		if err != nil {
			t.Error(err)
			return nil
		}
		in.Pod = raw.Pod
		after := policies.Decide(in).Rewrite(raw.Pod)
		leave(after)
		text, err := json.Marshal(after)
		if err != nil {
			t.Error(err)
		}
		operations, err := jsonpatch.CreatePatch(r.Object.Raw, text)
		if err != nil {
			t.Error(err)
		}
		patch, err := json.Marshal(operations)
		if err != nil {
			t.Error(err)
		}
		return patch
	})
}
