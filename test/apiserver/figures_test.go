package apiserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/cmd/client/budget"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/doctor"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/install"
)

// until polls for half a minute.
func until(t *testing.T, what string, done func() (bool, string)) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 30*time.Second, true, func(context.Context) (ok bool, err error) {
		ok, last = done()
		return ok, nil
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, last)
	}
}

// quotaSaid is quota -o json, of one budget.
func quotaSaid(t *testing.T, kubeconfig, namespace string) budget.Budget {
	t.Helper()
	got := command(t, kubeconfig, "quota", "-n", namespace, "-o", "json")
	got.want(t, 0)
	var list struct{ Items []budget.Budget }
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%v: %s", err, got.out)
	}
	return list.Items[0]
}

func TestQuotaCommand(t *testing.T) {
	t.Run("shows admins and tenants their quotas", func(t *testing.T) {
		i := need(t)
		const ns = "quota-told"
		quotaOf(t, i, ns, "{memory: 16Gi, pools: {l4-time-slicing-4-fc4c35b3: {slices: 4}}}")
		for name, memory := range map[string]string{"small": "1Gi", "large": "4Gi"} {
			if _, err := i.Apply.Create(t.Context(), sliceOf(t, name, ns, memory), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		admin, somebody := i.Server.Kubeconfig, editorsFile(t, i, ns)
		until(t, "count both pods", func() (bool, string) {
			b := quotaSaid(t, somebody, ns)
			return b.Counted && len(b.Figures) > 0 && b.Figures[0].Used == 5<<30, command(t, somebody, "quota", "-n", ns).out
		})
		asked, read := quotaSaid(t, somebody, ns), quotaSaid(t, admin, ns)
		for who, b := range map[string]budget.Budget{"a tenant": asked, "an admin": read} {
			want := quota.Figure{Quota: ns, Dimension: "memory", Limit: 16 << 30, Used: 5 << 30}
			if b.Budget != "namespace/"+ns || b.Policy == "" || len(b.Figures) != 2 || b.Figures[0] != want ||
				b.Figures[1].Part != "pool/l4-time-slicing-4-fc4c35b3" || b.Figures[1].Used != 2 {
				t.Errorf("%s reads %+v", who, b)
			}
			if len(b.Holders) != 2 || b.Holders[0].Pod != "large" || b.Holders[0].Memory != 4<<30 || !b.Holders[0].Promised {
				t.Errorf("%s reads of %+v", who, b.Holders)
			}
		}
		text := []string{"namespace " + ns, "5Gi", "16Gi", "[######..............]  31%", ns + "/large", "4Gi"}
		command(t, somebody, "quota", "-n", ns).want(t, 0, text...)
		command(t, admin, "quota", "-A").want(t, 0, text...)
		command(t, somebody, "policy", "show", "-n", ns).want(t, 0, "namespace "+ns+": policy ", "quota.memory", "16Gi")
		command(t, somebody, "quota", "-A").want(t, 2, "forbidden", "gpuslice quota -n NAMESPACE")

		if pods, err := i.Server.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) != 2 {
			t.Errorf("asking made pods: %d, %v", len(pods.Items), err)
		}
		if err := i.Server.Namespace(t.Context(), "quota-ungoverned", nil); err != nil {
			t.Fatal(err)
		}
		command(t, admin, "quota", "-n", "quota-ungoverned").want(t, 0, "no policy governs it")
		bypassed, err := i.Server.Client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		bypassed.Labels[api.LabelBypass] = "true"
		if _, err := i.Server.Client.CoreV1().Namespaces().Update(t.Context(), bypassed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		until(t, "see the bypass", func() (bool, string) {
			got := command(t, somebody, "quota", "-n", ns)
			return got.code == 2 && strings.Contains(got.errs, "exempt or bypassed"), got.out + got.errs
		})
	})
}

func TestQuotaReport(t *testing.T) {
	t.Run("a report request is no pod, and a dry run shows what is left", func(t *testing.T) {
		i := need(t)
		const ns = "quota-question"
		quotaOf(t, i, ns, "{memory: 16Gi}")
		question := podOf(t, "question", ns,
			"metadata:\n  annotations: {gpuslice.dev/report: quota}\nspec:\n  containers:\n  - {name: a, image: busybox}\n")
		_, err := i.Apply.Create(t.Context(), question, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "is answered to a dry-run only") {
			t.Errorf("a question that is to be created: %v", err)
		}
		if _, err := i.Apply.Create(t.Context(), sliceOf(t, "one", ns, "4Gi"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		until(t, "read what is left", func() (bool, string) {
			heard := &collector{}
			if _, err := i.Apply.Warning(heard).Create(t.Context(), sliceOf(t, "two", ns, "4Gi"),
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Fatal(err)
			}
			all := strings.Join(heard.texts, "\n")
			return strings.Contains(all, "quota "+ns+": memory 4Gi of 16Gi used"), all
		})
	})
}

// figuresOf are the webhook's metrics of a namespace.
func figuresOf(t *testing.T, i *install.Installation, namespace string) string {
	t.Helper()
	response, err := http.Get("http://" + i.Webhook.Probes + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(all)) {
		if strings.Contains(line, `/`+namespace+`"`) || strings.Contains(line, `namespace="`+namespace+`"`) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestQuotaMetrics(t *testing.T) {
	t.Run("usage is measured and unmanaged pods are reported", func(t *testing.T) {
		i := need(t)
		const ns = "quota-measured"
		quotaOf(t, i, ns, "{memory: 64Gi}")
		if _, err := i.Apply.Create(t.Context(), sliceOf(t, "one", ns, "4Gi"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		label := func(change func(map[string]string)) {
			t.Helper()
			n, err := i.Server.Client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
			if err == nil {
				change(n.Labels)
				_, err = i.Server.Client.CoreV1().Namespaces().Update(t.Context(), n, metav1.UpdateOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		// While nobody is asked: everything of ours is off here, and then on again.
		label(func(l map[string]string) { l[api.LabelBypass] = "true" })
		var unmanaged *unstructured.Unstructured
		err := i.Down(t.Context(), func() {
			until(t, "create a pod while we are away", func() (bool, string) {
				var err error
				unmanaged, err = i.Apply.Create(t.Context(), sliceOf(t, "unmanaged", ns, "4Gi"), metav1.CreateOptions{})
				return err == nil, "it is denied"
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		label(func(l map[string]string) { delete(l, api.LabelBypass) })
		until(t, "measure both", func() (bool, string) {
			all := figuresOf(t, i, ns)
			for _, want := range []string{
				`gpuslice_quota_limit{budget="namespace/quota-measured",dimension="memory",part=""} 6.8719476736e+10`,
				`gpuslice_namespace_charge{dimension="slices",namespace="quota-measured"} `,
				`gpuslice_quota_used{budget="namespace/quota-measured",dimension="memory",part=""} `,
				`gpuslice_unmanaged_pods{namespace="quota-measured"} 1`,
				`gpuslice_namespace_charged_memory_byte_seconds_total{namespace="quota-measured"} `,
			} {
				if !strings.Contains(all, want) {
					return false, all
				}
			}
			return true, all
		})
		until(t, "report the unmanaged pod", func() (bool, string) {
			e, err := i.Server.Client.CoreV1().Events(ns).Get(t.Context(), "gpuslicenotreviewed."+string(unmanaged.GetUID()), metav1.GetOptions{})
			return err == nil && strings.Contains(e.Message, "counts in the quota as whole devices (") && e.Type == corev1.EventTypeWarning,
				"no Event"
		})
	})
}

// sameNamespaces compares the namespaces that audit evaluates with those that doctor calls governed.
func sameNamespaces(t *testing.T, kubeconfig string) {
	t.Helper()
	var audited struct{ Items []struct{ Namespace string } }
	said := command(t, kubeconfig, "audit", "-A", "--include-enforced", "-o", "json")
	if err := json.Unmarshal([]byte(said.out), &audited); err != nil {
		t.Fatalf("%v\n%s", err, said.errs)
	}
	var evaluated, governed []string
	for _, item := range audited.Items {
		evaluated = append(evaluated, "namespace/"+item.Namespace)
	}
	for _, f := range findings(t, kubeconfig, 3, "doctor") {
		for _, e := range f.Evidence {
			if f.Check == "policies" && f.Level == doctor.OK {
				governed = append(governed, e.Object)
			}
		}
	}
	if diff := cmp.Diff(governed, evaluated); diff != "" || len(governed) == 0 {
		t.Errorf("(-doctor +audit):\n%s", diff)
	}
}

func TestAudit(t *testing.T) {
	t.Run("shows what enforce would do", func(t *testing.T) {
		i := need(t)
		const ns = "audit-live"
		setUpReapply(t, i, ns)
		document := "apiVersion: gpuslice.dev/v1\nenforcementMode: audit\nmode: transparent\ndefaultSlice: {memory: 4Gi}\nstrategies: [time-slicing]\nnamespaces: {names: [" + ns + "]}\nquota: {memory: 8Gi}\n"
		if err := i.Policy(t.Context(), ns, []byte(document)); err != nil {
			t.Fatal(err)
		}
		if err := i.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		gpu := "spec:\n  containers:\n  - {name: a, image: 'pytorch/pytorch:2.4.0', resources: {limits: {nvidia.com/gpu: 1}}}\n"
		for _, p := range []*unstructured.Unstructured{
			podOf(t, "one", ns, gpu), podOf(t, "two", ns, gpu), podOf(t, "three", ns, gpu),
			podOf(t, "plain", ns, "spec:\n  containers:\n  - {name: a, image: busybox}\n"),
			podOf(t, "mighty", ns, strings.Replace(gpu, "spec:\n", "spec:\n  hostPID: true\n", 1)),
		} {
			got, err := i.Apply.Create(t.Context(), p, metav1.CreateOptions{})
			if err != nil || got.GetAnnotations()[api.AnnotationPromise] != "" {
				t.Fatalf("%s: %v, %v", p.GetName(), err, got)
			}
		}
		large := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "large"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "large", api.LabelMemory: "40Gi"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}}}
		if _, err := i.Server.Client.AppsV1().Deployments(ns).Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		admin := i.Server.Kubeconfig
		command(t, admin, "audit", "-n", ns).want(t, 3, "namespace "+ns, "6 evaluated: enforce would deny 3, mutate 2",
			"exceeded quota: audit-live, requested: memory=4Gi, used: memory=8Gi, limited: memory=8Gi",
			"Deployment large: ", "Pod mighty: ", "mutated (sliced): 2")
		command(t, admin, "audit", "-A").want(t, 3, "namespace "+ns)
		sameNamespaces(t, admin)
		if pods, err := i.Server.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) != 5 {
			t.Errorf("%d pods, %v", len(pods.Items), err)
		}
		editor := editorsFile(t, i, ns)
		setQuota(t, i, ns, "{memory: 64Gi}")
		command(t, admin, "audit", "-n", ns).want(t, 0, "enforced already")
		command(t, admin, "audit", "-n", ns, "--include-enforced").want(t, 3, "6 evaluated")
		command(t, editor, "audit", "-n", ns).want(t, 2, "forbidden")
	})
}

func TestTenantDocumentsRead(t *testing.T) {
	t.Run("what is read of a cluster has the tenants' own documents", func(t *testing.T) {
		i := need(t)
		const ns = "tenant-read"
		setUpReapply(t, i, ns)
		if err := i.TenantPolicy(t.Context(), i.Server.Config, ns,
			[]byte("apiVersion: gpuslice.dev/v1\nlimits:\n  perContainer: {memory: 2Gi}\n")); err != nil {
			t.Fatal(err)
		}
		if err := i.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		file := manifest(t, "train", manifests["label"])
		command(t, i.Server.Kubeconfig, "render", "-f", file, "-n", ns).want(t, 3, "tightened by "+ns+"/gpuslice-policy allows 2Gi")
		own := t.TempDir() + "/own.yaml"
		write(t, own, "apiVersion: gpuslice.dev/v1\n")
		command(t, i.Server.Kubeconfig, "render", "-f", file, "-n", ns, "--tenant-policy", own).want(t, 0, "mutated")
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
