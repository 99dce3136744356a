package chart

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	psa "k8s.io/pod-security-admission/api"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
)

const (
	deployment    = "gpuslice-webhook"
	configuration = "gpuslice"
)

// TestInstall goes the whole way in both ways in which Helm writes: Helm 3's is also what Helm 4 does for a
// release that Helm 3 installed.
func TestInstall(t *testing.T) {
	t.Parallel()
	t.Run("install, upgrade, uninstall", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct{ name, serverSide string }{
			{"applied by the server, as Helm 4 does", "true"},
			{"merged by the client, as Helm 3 does", "false"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				s := cluster.ForTest(t, cluster.Options{ControllerManager: true})
				h := newHelm(t, s.Kubeconfig)
				before := objects(t, s.Config)
				namespaced := []string{"--namespace=" + api.SystemNamespace}
				h.run(append(namespaced, "install", release, chartFolder, version("v1"), "--create-namespace", "--server-side="+tt.serverSide)...)
				writeBundle(t, s)

				h.run(append(namespaced, "upgrade", release, chartFolder, version("v2"),
					"--set=replicas=2,log.level=debug,excludedNamespaces={monitoring}",
					"--set=policies.team-a.apiVersion=gpuslice.dev/v1")...)
				keepsBundle(t, s)
				d, err := s.Client.AppsV1().Deployments(api.SystemNamespace).Get(t.Context(), deployment, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got := d.Spec.Template.Spec.Containers[0].Image; *d.Spec.Replicas != 2 || got != "gpuslice/webhook:v2" {
					t.Errorf("after the upgrade: %d replicas of %s", *d.Spec.Replicas, got)
				}
				h.run(append(namespaced, "rollback", release, "1")...)
				keepsBundle(t, s)

				// From self to files the bundle changes its owner, which the server lets nobody do unasked.
				files := append(namespaced, "upgrade", release, chartFolder, everything,
					"--set=metrics.alerts.enabled=false,metrics.guards.enabled=false,metrics.agents.enabled=false,metrics.podMonitor.enabled=false,metrics.serviceMonitor.enabled=false")
				if _, err := h.try(files...); tt.serverSide == "true" && (err == nil || !strings.Contains(err.Error(), "caBundle")) {
					t.Errorf("the chart took caBundle from the webhook without being told to: %v", err)
				}
				if tt.serverSide == "true" {
					h.run(append(files, "--force-conflicts")...)
				}

				h.run(append(namespaced, "uninstall", release)...)
				awaitObjects(t, s.Config, append(before, "Namespace  "+api.SystemNamespace))
			})
		}
	})
}

// writeBundle does as the webhook does, with its rights: one field of each entry, by a patch.
func writeBundle(t *testing.T, s *cluster.APIServer) {
	t.Helper()
	config, err := s.ServiceAccount(t.Context(), api.SystemNamespace, "gpuslice-webhook")
	if err != nil {
		t.Fatal(err)
	}
	server := kubernetes.NewForConfigOrDie(config).AdmissionregistrationV1()
	for kind, entries := range bundles(t, s) {
		var operations []string
		for i := range entries {
			operations = append(operations,
				fmt.Sprintf(`{"op":"add","path":"/webhooks/%d/clientConfig/caBundle","value":%q}`, i, base64.StdEncoding.EncodeToString(s.CA())))
		}
		patch := []byte("[" + strings.Join(operations, ",") + "]")
		if err := server.RESTClient().Patch(types.JSONPatchType).Resource(kind).Name(configuration).Body(patch).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
}

// bundles are what the entries of the webhook configurations trust, by the resource and in their order.
func bundles(t *testing.T, s *cluster.APIServer) map[string][][]byte {
	t.Helper()
	server := s.Client.AdmissionregistrationV1()
	m, err := server.MutatingWebhookConfigurations().Get(t.Context(), configuration, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := server.ValidatingWebhookConfigurations().Get(t.Context(), configuration, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][][]byte{}
	for _, w := range m.Webhooks {
		out["mutatingwebhookconfigurations"] = append(out["mutatingwebhookconfigurations"], w.ClientConfig.CABundle)
	}
	for _, w := range v.Webhooks {
		out["validatingwebhookconfigurations"] = append(out["validatingwebhookconfigurations"], w.ClientConfig.CABundle)
	}
	return out
}

func keepsBundle(t *testing.T, s *cluster.APIServer) {
	t.Helper()
	for kind, entries := range bundles(t, s) {
		for i, have := range entries {
			if !bytes.Equal(have, s.CA()) {
				t.Errorf("entry %d of the %s has lost its caBundle: the API server no longer reaches the webhook", i, kind)
			}
		}
	}
}

// TestPodSecurity asks the API server's own admission, with the defaults and with every value changed.
func TestPodSecurity(t *testing.T) {
	t.Parallel()
	t.Run("replicas pass the restricted level", func(t *testing.T) {
		t.Parallel()
		s := cluster.ForTest(t, cluster.Options{})
		const namespace = "restricted"
		labels := map[string]string{psa.EnforceLevelLabel: string(psa.LevelRestricted), psa.EnforceVersionLabel: psa.VersionLatest}
		if err := s.Namespace(t.Context(), namespace, labels); err != nil {
			t.Fatal(err)
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "gpuslice-webhook"}}
		if _, err := s.Client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		h := newHelm(t, "")
		for _, values := range []string{version("v1"), everything} {
			pod := replica(t, h, values)
			pod.Spec.HostNetwork = false // which the level forbids, and values.yaml says so
			for i := range pod.Spec.Containers[0].Ports {
				pod.Spec.Containers[0].Ports[i].HostPort = 0
			}
			if values == everything {
				pod.Spec.PriorityClassName = "" // a class that this cluster does not have
			}
			if err := dryRun(t.Context(), s, namespace, pod); err != nil {
				t.Errorf("%s: %v", values, err)
			}
			pod.Spec.HostPID = true
			if err := dryRun(t.Context(), s, namespace, pod); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
				t.Errorf("%s: nobody enforces the level here: %v", values, err)
			}
		}
	})
}

// replica is a pod of the rendered Deployment.
func replica(t *testing.T, h *helm, values string) *corev1.Pod {
	t.Helper()
	for _, o := range h.render(values) {
		if o.GetKind() == "Deployment" {
			template := convert(t, o).Spec.Template
			template.ObjectMeta.Name = "replica"
			return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		}
	}
	t.Fatal("no Deployment is rendered")
	return nil
}

func dryRun(ctx context.Context, s *cluster.APIServer, namespace string, pod *corev1.Pod) error {
	_, err := s.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// TestAKS tries what AKS does to every webhook configuration, under the name of its own writer: it adds to the
// namespace selector. Values that say the same make an upgrade that nobody objects to.
func TestAKS(t *testing.T) {
	t.Parallel()
	t.Run("agrees with helm", func(t *testing.T) {
		t.Parallel()
		s := cluster.ForTest(t, cluster.Options{})
		h := newHelm(t, s.Kubeconfig)
		namespaced := []string{"--namespace=" + api.SystemNamespace}
		h.run(append(namespaced, "install", release, chartFolder, version("v1"), "--create-namespace")...)
		server := s.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
		m, err := server.Get(t.Context(), configuration, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Webhooks {
			selector := m.Webhooks[i].NamespaceSelector
			selector.MatchExpressions = append(selector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: "control-plane", Operator: "NotIn", Values: []string{"true"}},
				metav1.LabelSelectorRequirement{Key: "kubernetes.azure.com/managedby", Operator: "NotIn", Values: []string{"aks"}})
		}
		if _, err := server.Update(t.Context(), m, metav1.UpdateOptions{FieldManager: "admissionsenforcer"}); err != nil {
			t.Fatal(err)
		}
		upgrade := append(namespaced, "upgrade", release, chartFolder, version("v1"))
		if _, err := h.try(upgrade...); err == nil || !strings.Contains(err.Error(), "admissionsenforcer") {
			t.Errorf("without the values Helm and AKS were said to be at odds: %v", err)
		}
		same := `--set-json=namespaceSelector=[{"key":"control-plane","operator":"NotIn","values":["true"]},{"key":"kubernetes.azure.com/managedby","operator":"NotIn","values":["aks"]}]`
		h.run(append(upgrade, same)...)
	})
}
