package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// margin is an expression that is true and costs a twentieth of what the API server lets one cost.
var margin = "[" + strings.Repeat("1,", 82) + "1].all(a, [" + strings.Repeat("1,", 99) + "1].all(b, a == b))"

// TestConditionCostMargin adds a margin to each match condition of a pod, and has the API server evaluate it for the pods that cost most.
// Beyond the bound a pod that uses no GPU would be denied, and one with a hidden GPU admitted where the namespace fails open.
func TestConditionCostMargin(t *testing.T) {
	i := need(t)
	const leftOut, beyond = "nvidia-device-plugin", "cost limit exceeded"
	if err := i.Server.Namespace(t.Context(), leftOut, nil); err != nil {
		t.Fatal(err)
	}
	pods := i.Server.Client.CoreV1().Pods(leftOut)
	stored := dearest("stored", false, 0)
	stored.Labels = nil
	if _, err := pods.Create(t.Context(), stored, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pods.Delete(context.Background(), stored.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	})
	dry := []string{metav1.DryRunAll}
	attempts := map[string]func() error{"update": func() error {
		_, err := pods.Patch(t.Context(), stored.Name, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{DryRun: dry})
		return err
	}}
	for name, pod := range map[string]*corev1.Pod{"create": dearest("p", false, 1_300_000),
		"create with claims": dearest("p", true, 1_300_000)} {
		if size := pod.Size(); size < 1400<<10 || size > 1536<<10 {
			t.Errorf("%s: the pod has %d bytes, and etcd stores 1.5 MiB", name, size)
		}
		attempts[name] = func() error {
			_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{DryRun: dry})
			return err
		}
	}
	evaluated := 0
	for _, w := range ourConditions(t) {
		for _, c := range w.MatchConditions {
			w.MatchConditions = []admissionv1.MatchCondition{{Name: c.Name, Expression: "!(" + margin + ") || (" + c.Expression + ")"}}
			evaluate(t, leftOut, w, func() {
				for name, attempt := range attempts {
					if err := attempt(); err == nil || strings.Contains(err.Error(), beyond) {
						t.Errorf("%s, %s: condition %s leaves no margin: %s", w.Name, name, c.Name, ending(err))
					}
				}
			})
			evaluated++
		}
	}
	if evaluated < 9 {
		t.Errorf("%d conditions are evaluated", evaluated)
	}
	for times, fits := range map[int]bool{19: true, 20: false} {
		w := admissionv1.ValidatingWebhook{Name: "margins.gpuslice.dev", Rules: rulesOfPods,
			MatchConditions: []admissionv1.MatchCondition{{Name: "c", Expression: margin + strings.Repeat(" && "+margin, times-1)}}}
		evaluate(t, leftOut, w, func() {
			if err := attempts["update"](); err == nil || strings.Contains(err.Error(), beyond) == fits {
				t.Errorf("%d margins: %s", times, ending(err))
			}
		})
	}
}

// rulesOfPods are those of an entry for all that becomes of pods.
var rulesOfPods = []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
	Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}

// ourConditions are the entries of our configurations that have conditions of pods.
func ourConditions(t *testing.T) (all []admissionv1.ValidatingWebhook) {
	t.Helper()
	client := need(t).Server.Client.AdmissionregistrationV1()
	validating, err := client.ValidatingWebhookConfigurations().Get(t.Context(), "gpuslice", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mutating, err := client.MutatingWebhookConfigurations().Get(t.Context(), "gpuslice", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(kind, name string, rules []admissionv1.RuleWithOperations, conditions []admissionv1.MatchCondition) {
		ofPods := func(r admissionv1.RuleWithOperations) bool { return slices.Contains(r.Resources, "pods") }
		if len(conditions) > 0 && slices.ContainsFunc(rules, ofPods) {
			all = append(all, admissionv1.ValidatingWebhook{Name: kind + "." + name, Rules: rules, MatchConditions: conditions})
		}
	}
	for _, w := range validating.Webhooks {
		add("validating", w.Name, w.Rules, w.MatchConditions)
	}
	for _, w := range mutating.Webhooks {
		add("mutating", w.Name, w.Rules, w.MatchConditions)
	}
	return all
}

// evaluate does something while the API server evaluates the conditions of an entry in a namespace. It denies every pod there: by
// the conditions, or since the entries lead nowhere.
func evaluate(t *testing.T, namespace string, w admissionv1.ValidatingWebhook, do func()) {
	t.Helper()
	client := need(t).Server.Client
	configurations := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	always := admissionv1.ValidatingWebhook{Name: "always.gpuslice.dev", Rules: rulesOfPods}
	made := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{GenerateName: "cost-"},
		Webhooks: []admissionv1.ValidatingWebhook{w, always}}
	for n := range made.Webhooks {
		to := &made.Webhooks[n]
		to.ClientConfig.URL, to.SideEffects, to.AdmissionReviewVersions = new("https://127.0.0.1:1/"),
			new(admissionv1.SideEffectClassNone), []string{"v1"}
		to.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	}
	made, err := configurations.Create(t.Context(), made, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("%s: %s", w.Name, ending(err))
	}
	small := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "x"}}}}
	await := func(denied bool) {
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			_, err := client.CoreV1().Pods(namespace).Create(ctx, small, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return (err != nil) == denied, nil
		})
		if err != nil {
			t.Fatalf("%s: pods are not denied as wanted (%t): %v", w.Name, denied, err)
		}
	}
	await(true)
	do()
	if err := configurations.Delete(t.Context(), made.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(false)
}

// ending is the end of an error that quotes a long expression.
func ending(err error) string {
	text := fmt.Sprint(err)
	return text[max(0, len(text)-200):]
}

// dearest is a pod without a GPU whose conditions cost most of all that etcd stores: 500 of each list, as long as names may be, and one
// path of so many bytes, which are searched to the end.
func dearest(name string, claims bool, path int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}, Labels: map[string]string{}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "x"}}}}
	for n := range 500 {
		domain := fmt.Sprintf("devices%03d.%s%s", n, strings.Repeat(strings.Repeat("x", 60)+".", 3), strings.Repeat("x", 59))
		pod.Annotations[domain+"/"+strings.Repeat("x", 63)] = ""
		pod.Labels[fmt.Sprint("k", n)] = ""
		if claims {
			pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims,
				corev1.PodResourceClaim{Name: fmt.Sprint("c", n), ResourceClaimName: new(fmt.Sprintf("c%058d", n))})
		}
	}
	if path > 0 {
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/" + strings.Repeat("x", path)}}
	}
	return pod
}
