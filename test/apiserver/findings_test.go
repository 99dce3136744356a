package apiserver

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/doctor"
	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/keys"
)

// gpuSoftware is what a GPU Operator leaves in a cluster, as far as doctor reads it, with what people leave unsafe.
const gpuSoftware = `
apiVersion: v1
kind: Namespace
metadata: {name: nvidia}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: sharing, namespace: nvidia}
data:
  any: |
    version: v1
    sharing:
      timeSlicing:
        renameByDefault: false
        resources: [{name: nvidia.com/gpu, replicas: 4}]
  exclusive: |
    version: v1
    sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-device-plugin-daemonset, namespace: nvidia}
spec:
  selector: {matchLabels: {app: plugin}}
  template:
    metadata: {labels: {app: plugin}}
    spec:
      containers:
      - {name: nvidia-device-plugin, image: 'nvcr.io/nvidia/k8s-device-plugin:v0.18.0', command: [nvidia-device-plugin], volumeMounts: [{name: config, mountPath: /config}]}
      volumes:
      - {name: config, configMap: {name: sharing}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-container-toolkit-daemonset, namespace: nvidia}
spec:
  selector: {matchLabels: {app: toolkit}}
  template:
    metadata: {labels: {app: toolkit}}
    spec:
      containers:
      - {name: nvidia-container-toolkit-ctr, image: 'nvcr.io/nvidia/k8s/container-toolkit:v1.18.0'}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus, namespace: findings}
spec: {hard: {requests.nvidia.com/gpu: "4", limits.nvidia.com/gpu: "4"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: large, namespace: findings}
spec: {limits: [{type: Container, max: {cpu: 10m}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: layouts, namespace: nvidia}
data:
  config.yaml: |
    version: v1
    mig-configs:
      balanced: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 2, 3g.40gb: 1}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: sidecars.example.com}
webhooks:
- name: sidecars.example.com
  clientConfig: {url: 'https://sidecars.example.com/'}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE], scope: Namespaced}]
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  namespaceSelector: {matchLabels: {no: such}}
`

const operatorPolicy = `
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec:
  toolkit: {version: v1.18.0}
  devicePlugin: {config: {name: sharing}}
  migManager: {config: {name: layouts}}
  mig: {strategy: single}
status: {state: ready, namespace: nvidia}
`

// operator gives the cluster a GPU Operator's ClusterPolicy, and takes it away after the test.
func operator(t *testing.T, i *install.Installation) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := i.Server.Kubectl(context.Background(), "delete", "clusterpolicy", "cluster-policy"); err != nil {
			t.Log(err)
		}
	})
	kubectl(t, i, "apply -f "+written(t, "policy.yaml", operatorPolicy))
}

func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// kubectl runs a line as somebody at a shell does.
func kubectl(t *testing.T, i *install.Installation, line string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `"$KUBECTL" `+line)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+i.Server.Kubeconfig, "KUBECTL="+programs.bin["kubectl"])
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", line, err, out)
	}
}

// carryOut runs the commands of the remedies of a check, and fails the test if there is none.
func carryOut(t *testing.T, i *install.Installation, all []doctor.Finding, check string) {
	t.Helper()
	commands := 0
	for _, f := range all {
		for line := range strings.Lines(f.Remedy) {
			if command, ok := strings.CutPrefix(line, "kubectl "); ok && f.Check == check {
				commands++
				kubectl(t, i, command)
			}
		}
	}
	if commands == 0 {
		t.Errorf("no remedy of %s has a command: %+v", check, all)
	}
}

// hasNot fails the test if a check found something of a level that says text.
func hasNot(t *testing.T, all []doctor.Finding, check string, level doctor.Level, text string) {
	t.Helper()
	for _, f := range all {
		if f.Check == check && f.Level == level && strings.Contains(f.Summary, text) {
			t.Errorf("%s still finds %+v", check, f)
		}
	}
}

// findings runs doctor or verify and returns what it found.
func findings(t *testing.T, kubeconfig string, code int, args ...string) []doctor.Finding {
	t.Helper()
	s := command(t, kubeconfig, append(args, "-o", "json")...)
	s.want(t, code)
	var list struct{ Items []doctor.Finding }
	if err := json.Unmarshal([]byte(s.out), &list); err != nil {
		t.Fatalf("%v\n%s\n%s", err, s.out, s.errs)
	}
	return list.Items
}

// has fails the test unless a check found something of a level that says text, with evidence on an object.
func has(t *testing.T, all []doctor.Finding, check string, level doctor.Level, text, object string) {
	t.Helper()
	for _, f := range all {
		if f.Check != check || f.Level != level || !strings.Contains(f.Summary, text) {
			continue
		}
		for _, e := range f.Evidence {
			if strings.HasPrefix(e.Object, object) {
				return
			}
		}
	}
	t.Errorf("no %s of %s says %q about %s in %+v", level, check, text, object, all)
}

func TestDoctor(t *testing.T) {
	t.Run("finds what stands in the way", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "findings")
		if err := i.Apply.Apply(t.Context(), []byte(gpuSoftware)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := i.Server.Kubectl(t.Context(), "delete", "mutatingwebhookconfiguration", "sidecars.example.com"); err != nil {
				t.Log(err)
			}
		})
		operator(t, i)
		kubectl(t, i, "label nodes --all nvidia.com/mig.config=balanced nvidia.com/device-plugin.config=gone")
		all := findings(t, i.Server.Kubeconfig, 3, "doctor")
		has(t, all, "gpu-nodes", doctor.OK, "nvidia.com/gpu.shared by time-slicing, 4 replicas", "node/")
		has(t, all, "drivers", doctor.OK, "565.57 or later", "node/")
		has(t, all, "device-plugin", doctor.OK, "NVIDIA's device plugin", "daemonset/nvidia/nvidia-device-plugin-daemonset")
		has(t, all, "device-plugin", doctor.Note, "names devices in a variable", "daemonset/nvidia/nvidia-device-plugin-daemonset")
		has(t, all, "sharing", doctor.Warning, "keep the name of whole ones", "configmap/nvidia/sharing")
		has(t, all, "sharing", doctor.Warning, "no more than one", "configmap/nvidia/sharing")
		has(t, all, "visible-devices", doctor.Problem, "GPUs that it did not request", "daemonset/nvidia/nvidia-container-toolkit-daemonset")
		has(t, all, "other-mutators", doctor.Note, "other mutating webhooks", "mutatingwebhookconfiguration/sidecars.example.com")
		has(t, all, "quotas", doctor.OK, "gpuslice counts pods", "resourcequota/findings/gpus")
		has(t, all, "uncounted-quotas", doctor.Warning, "limit nothing", "resourcequota/findings/gpus")
		has(t, all, "limit-ranges", doctor.Problem, "leaves no room for the guard", "limitrange/findings/large")
		has(t, all, "plugin-config", doctor.Problem, "does not start", "configmap/nvidia/sharing")
		has(t, all, "plugin-selection", doctor.Problem, "does not exist", "node/")
		has(t, all, "cluster-policy", doctor.OK, "deploys NVIDIA's software", "clusterpolicy/cluster-policy")
		has(t, all, "mig-strategy", doctor.Problem, "several profiles", "clusterpolicy/cluster-policy")
		has(t, all, "replicas", doctor.Problem, "there is no webhook", "deployments")

		for _, check := range []string{"uncounted-quotas", "mig-strategy", "device-plugin"} {
			carryOut(t, i, all, check)
		}
		all = findings(t, i.Server.Kubeconfig, 3, "doctor")
		hasNot(t, all, "uncounted-quotas", doctor.Warning, "")
		hasNot(t, all, "mig-strategy", doctor.Problem, "")
		hasNot(t, all, "device-plugin", doctor.Note, "names devices in a variable")
	})
	t.Run("finds the same in files of the cluster", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "dumped")
		operator(t, i)
		dump := exec.CommandContext(t.Context(), "bash", "-c", `kubectl() { "$KUBECTL" "$@"; }; `+doctor.DumpCommand())
		dump.Dir = t.TempDir()
		dump.Env = append(os.Environ(), "KUBECONFIG="+i.Server.Kubeconfig, "KUBECTL="+programs.bin["kubectl"])
		if out, err := dump.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		// Files do not show rights and API groups; everything else is the same.
		beside := func(all []doctor.Finding) (out []doctor.Finding) {
			for _, f := range all {
				if f.Check != "rights" && f.Check != "platform" {
					out = append(out, f)
				}
			}
			return out
		}
		live := beside(findings(t, i.Server.Kubeconfig, 3, "doctor"))
		filed := beside(findings(t, "/nowhere", 3, "doctor", "-f", filepath.Join(dump.Dir, "dump")))
		if diff := cmp.Diff(live, filed); diff != "" {
			t.Errorf("(-cluster +files):\n%s", diff)
		}
	})
}

// deployment makes the webhook's Deployment, with the status that a controller would write.
func deployment(t *testing.T, i *install.Installation, ready int32) {
	t.Helper()
	text, err := fs.ReadFile(deploy.Files, "40-deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Apply.Apply(t.Context(), []byte(strings.ReplaceAll(string(text), "VERSION", "test"))); err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "gpuslice-webhook"}}
	server := i.Server.Client.AppsV1().Deployments(api.SystemNamespace)
	if d, err = server.Get(t.Context(), d.Name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	d.Status.Replicas, d.Status.ReadyReplicas = ready, ready
	if _, err := server.UpdateStatus(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// resigned installs again without the keys, and has the pod's slice signed anew.
func resigned(t *testing.T, server *cluster.APIServer, pod string) {
	t.Helper()
	if err := server.Client.CoreV1().Secrets(api.SystemNamespace).Delete(t.Context(), keys.SecretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	i, err := install.New(t.Context(), server, programs.webhook, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	command(t, server.Kubeconfig, "resign").want(t, 2, "team-a/"+pod, "confirm with --yes")
	command(t, server.Kubeconfig, "resign", "--yes").want(t, 0, "team-a/"+pod, "signed 1 pods")
	command(t, server.Kubeconfig, "resign", "--yes").want(t, 0, "nothing to do")
}

// TestDoctorToUninstall goes through the life of an installation on an API server of its own.
func TestDoctorToUninstall(t *testing.T) {
	t.Parallel()
	t.Run("from the check of an installation to its removal", func(t *testing.T) {
		need(t)
		server, err := cluster.StartAPIServer(t.Context(), cluster.Options{Bin: programs.bin})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		has(t, findings(t, server.Kubeconfig, 4, "doctor"), "installation", doctor.Note, "not installed", "namespace/gpuslice-system")
		if err := classes(t.Context(), server); err != nil {
			t.Fatal(err)
		}
		i, err := install.New(t.Context(), server, programs.webhook, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(i.Stop)
		setUpReapply(t, i, "team-a")
		deployment(t, i, 3)

		all := findings(t, server.Kubeconfig, 0, "verify", "-n", "team-a")
		has(t, all, "slice", doctor.OK, "comes out in a slice", "namespace/team-a")
		has(t, all, "denial", doctor.OK, "is denied", "namespace/team-a")
		has(t, all, "authority", doctor.OK, "good until", "mutatingwebhookconfiguration/gpuslice")
		has(t, all, "replicas", doctor.OK, "3 of 3", "deployment/gpuslice-system/gpuslice-webhook")
		has(t, findings(t, server.Kubeconfig, 0, "verify"), "slice", doctor.OK, "comes out in a slice", "namespace/")
		has(t, findings(t, server.Kubeconfig, 3, "verify", "-n", "default"), "namespace", doctor.Problem,
			"namespace default", "namespace/gpuslice-system")

		sliced, err := i.Apply.Create(t.Context(),
			podOf(t, "sliced", "team-a", "metadata:\n  labels: {gpuslice.dev/memory: 4Gi}\nspec:\n  containers:\n  - {name: a, image: a, resources: {limits: {nvidia.com/gpu: 1}}}\n"), metav1.CreateOptions{})
		if err != nil || sliced.GetAnnotations()[api.AnnotationPromise] == "" {
			t.Fatalf("%v: %v", err, sliced)
		}
		for namespace, bounds := range map[string]string{"a-full": "quota: {slices: 0}", "a-small": "limits: {perContainer: {memory: 1Gi}}"} {
			if err := server.Namespace(t.Context(), namespace, nil); err != nil {
				t.Fatal(err)
			}
			if err := i.Policy(t.Context(), namespace,
				[]byte("apiVersion: gpuslice.dev/v1\nnamespaces: {names: ["+namespace+"]}\n"+bounds+"\n")); err != nil {
				t.Fatal(err)
			}
		}
		if err := i.Settle(t.Context(),
			poolNames(t, pools.Source{Nodes: nodesOf(t, "l4-timeslicing-renamed")}, defaultPolicy(""))...); err != nil {
			t.Fatal(err)
		}
		has(t, findings(t, server.Kubeconfig, 0, "verify", "-n", "a-full"), "slice", doctor.OK, "has no room for a slice", "namespace/a-full")
		has(t, findings(t, server.Kubeconfig, 0, "verify", "-n", "a-small"), "slice", doctor.OK, "comes out in a slice", "namespace/a-small")
		has(t, findings(t, server.Kubeconfig, 0, "verify"), "slice", doctor.OK, "comes out in a slice", "namespace/a-small")
		command(t, server.Kubeconfig, "resign", "--dry-run").want(t, 0, "nothing to do")

		i.Stop()
		deployment(t, i, 0)
		all = findings(t, server.Kubeconfig, 3, "verify", "-n", "team-a")
		has(t, all, "slice", doctor.Problem, "has to come out in a slice was denied", "namespace/team-a")
		has(t, all, "denial", doctor.Problem, "for another reason", "namespace/team-a")
		has(t, all, "replicas", doctor.Problem, "no replica", "deployment/")

		command(t, server.Kubeconfig, "uninstall").want(t, 2, "--yes")
		command(t, server.Kubeconfig, "uninstall", "--dry-run").want(t, 0, "mutatingwebhookconfiguration/gpuslice would be removed",
			"namespace gpuslice-system stays, with that Secret")
		command(t, server.Kubeconfig, "uninstall", "--dry-run", "--purge").want(t, 0,
			"secret/gpuslice-promise-keys would be removed", "namespace/gpuslice-system would be removed")
		kept := command(t, server.Kubeconfig, "uninstall", "--yes", "--keep-policies")
		kept.want(t, 0, "deployment/gpuslice-webhook removed", "secret/gpuslice-authority removed",
			"configmap/gpuslice-state removed", "stays, with its policies")
		if first, _, _ := strings.Cut(kept.out, "\n"); first != "mutatingwebhookconfiguration/gpuslice removed" {
			t.Errorf("first %q", first)
		}
		if left, err := server.Client.CoreV1().ConfigMaps(api.SystemNamespace).Get(t.Context(), "team-a", metav1.GetOptions{}); err != nil ||
			left.Labels[api.LabelPolicy] != "true" {
			t.Errorf("the policy is gone: %v", err)
		}
		if _, err := server.Client.CoreV1().Secrets(api.SystemNamespace).Get(t.Context(), keys.SecretName, metav1.GetOptions{}); err != nil {
			t.Errorf("the keys are gone: %v", err)
		}
		resigned(t, server, sliced.GetName())
		// Without a controller manager no namespace goes: the command waits for its deadline.
		command(t, server.Kubeconfig, "uninstall", "--yes", "--purge", "--timeout=1s").want(t, 2, "configmap/team-a removed",
			"secret/gpuslice-promise-keys removed", "namespace/gpuslice-system is not removed after 1s")
		command(t, server.Kubeconfig, "uninstall", "--yes", "--timeout=0").want(t, 0)
	})
}
