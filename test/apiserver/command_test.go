package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// said is what a command line came to.
type said struct {
	code      int
	out, errs string
}

// command runs the command line against a cluster.
func command(t *testing.T, kubeconfig string, args ...string) said {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs.gpuslice, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return said{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// want fails the test unless the command ended with code and said all of texts.
func (s said) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if s.code != code {
		t.Errorf("exit %d, want %d\n%s\n%s", s.code, code, s.out, s.errs)
	}
	for _, text := range texts {
		if !strings.Contains(s.out+s.errs, text) {
			t.Errorf("%q is not said\n%s\n%s", text, s.out, s.errs)
		}
	}
}

// manifest writes one of the manifests into a file.
func manifest(t *testing.T, name, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	text := "apiVersion: v1\nkind: Pod\n" + strings.Replace(body, "metadata:\n", "metadata:\n  name: "+name+"\n", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// editorsFile is a kubeconfig of somebody who may edit one namespace, and nothing else. The roles are those that "edit"
// is made of where a controller manager runs.
func editorsFile(t *testing.T, i *install.Installation, namespace string) string {
	t.Helper()
	for _, role := range []string{"system:aggregate-to-edit", "system:aggregate-to-view"} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: namespace}},
		}
		if _, err := i.Server.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	config, err := i.Server.ServiceAccount(t.Context(), namespace, "default")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(path, config); err != nil {
		t.Fatal(err)
	}
	return path
}

// rendered is what render -o json says of a pod.
type rendered struct {
	Items []struct {
		Outcome policies.Outcome
		Object  struct{ Metadata metav1.ObjectMeta }
	}
}

// promised is the promise on the first item.
func promised(t *testing.T, s said) promise.Promise {
	t.Helper()
	var list rendered
	if err := json.Unmarshal([]byte(s.out), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%v: %s\n%s", err, s.out, s.errs)
	}
	p, err := promise.Decode(list.Items[0].Object.Metadata.Annotations[api.AnnotationPromise])
	if err != nil {
		t.Fatal(err)
	}
	p.Signature = ""
	return *p
}

func TestRender(t *testing.T) {
	t.Run("shows what the cluster does", func(t *testing.T) {
		i := need(t)
		const namespace = "render-live"
		setUpReapply(t, i, namespace)
		admin, file := i.Server.Kubeconfig, manifest(t, "train", manifests["label"])
		said := command(t, admin, "render", "-f", file, "-n", namespace, "-o", "json", "--guard-image", "gpuslice/guard:test")
		said.want(t, 0)
		asked := command(t, admin, "render", "-f", file, "-n", namespace, "-o", "json", "--dry-run=server")
		asked.want(t, 0)
		read, actual := promised(t, said), promised(t, asked)
		if read.Encode() != actual.Encode() {
			t.Errorf("what was read leads to\n%s\nand the webhooks give\n%s", read.Encode(), actual.Encode())
		}
		command(t, admin, "render", "-f", file, "-n", namespace, "--dry-run=server", "-o", "diff").want(t, 0, "+    name: gpuslice-guard",
			"+    restartPolicy: Always", "mutated: a 4Gi under time-slicing")
		command(t, admin, "explain", "-f", file, "-n", namespace, "--dry-run=server").want(t, 0, "time-slicing", "CONTAINER")
		tooLarge := manifest(t, "large", strings.ReplaceAll(manifests["label"], "4Gi", "40Gi"))
		for _, how := range [][]string{{}, {"--dry-run=server"}} {
			command(t, admin, append([]string{"render", "-f", tooLarge, "-n", namespace}, how...)...).want(t, 3, "denied", "40Gi")
		}
		command(t, admin, "policy", "lint").want(t, 0, "problems: 0")
		command(t, admin, "render", "-f", file, "-n", namespace, "--nodes", "../scenarios/nodes/l4-timeslicing-renamed.yaml").want(
			t, 0, "no --policies given")
		command(t, admin, "render", "-f", file, "-n", namespace, "--nodes",
			"../scenarios/nodes/l4-timeslicing-renamed.yaml", "--context", "test").want(t, 0, "mutated")
	})
}

func TestRenderAsTenant(t *testing.T) {
	t.Run("a tenant reads how to ask the server", func(t *testing.T) {
		i := need(t)
		const namespace = "render-tenant"
		setUpReapply(t, i, namespace)
		if err := i.Server.Namespace(t.Context(), "somebody-elses", nil); err != nil {
			t.Fatal(err)
		}
		somebody, file := editorsFile(t, i, namespace), manifest(t, "train", manifests["label"])
		command(t, somebody, "render", "-f", file, "-n", namespace).want(t, 2, "forbidden",
			"gpuslice render --dry-run=server -f FILE -n "+namespace)
		command(t, somebody, "render", "-f", file, "-n", namespace, "--dry-run=server").want(t, 0, "mutated: a 4Gi under time-slicing")
		command(t, somebody, "render", "-f", file, "-n", "somebody-elses", "--dry-run=server").want(t, 2, "you may not create it")
		command(t, somebody, "verify", "-n", namespace).want(t, 3, "may not be read")
		command(t, somebody, "doctor").want(t, 4, "nodes could not be read", "you may not do all")
	})
}

func TestExplain(t *testing.T) {
	t.Run("explains a live pod", func(t *testing.T) {
		i := need(t)
		const namespace = "explain-live"
		setUpReapply(t, i, namespace)
		if _, err := i.Apply.Create(t.Context(), podOf(t, "train", namespace, manifests["label"]), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		admin, somebody := i.Server.Kubeconfig, editorsFile(t, i, namespace)
		asked := []string{"pending", "a: 1 nvidia.com/gpu, memory 4Gi", "time-slicing", "PYTORCH_CUDA_ALLOC_CONF", "guard"}
		command(t, admin, "explain", "train", "-n", namespace).want(t, 0, append(asked, "OFFERED")...)
		command(t, somebody, "explain", "pod/train", "-n", namespace).want(t, 0, append(asked, "free replicas are unknown")...)
		command(t, admin, "explain", "gone", "-n", namespace).want(t, 2, "it was denied, or it is gone")
		command(t, admin, "explain", "service/train", "-n", namespace).want(t, 2, "accepted: POD, or KIND/NAME")

		deployment, err := i.Server.Client.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "large"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "large"}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "large"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// There is no controller manager here: what one would write is written by hand.
		yes := true
		set, err := i.Server.Client.AppsV1().ReplicaSets(namespace).Create(t.Context(), &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: "large-1", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "Deployment", Name: "large", UID: deployment.UID, Controller: &yes},
			}},
			Spec: appsv1.ReplicaSetSpec{Selector: deployment.Spec.Selector, Template: deployment.Spec.Template},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		denial := `Error creating: admission webhook "pods.gpuslice.dev" denied the request: 40Gi does not fit`
		if _, err := i.Server.Client.CoreV1().Events(namespace).Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "large-1"}, Reason: "FailedCreate", Type: corev1.EventTypeWarning, Message: denial,
			InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: namespace, Name: set.Name, UID: set.UID},
			Source:         corev1.EventSource{Component: "replicaset-controller"},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		command(t, somebody, "explain", "deployment/large", "-n", namespace).want(t, 3, "because its pods are denied: "+denial)
		var told struct {
			State  string
			Object struct{ Kind string }
		}
		out := command(t, somebody, "explain", "deploy/large", "-n", namespace, "-o", "json")
		if err := json.Unmarshal([]byte(out.out), &told); err != nil || told.Object.Kind != "deployment" || told.State != "pending" {
			t.Errorf("%v: %+v\n%s", err, told, out.out)
		}
		if completed := command(t, admin, "__complete", "explain", "-n", namespace, ""); !strings.HasPrefix(completed.out, "train\n") {
			t.Errorf("completed %q", completed.out)
		}
	})
}

func TestList(t *testing.T) {
	t.Run("lists what live pods were given", func(t *testing.T) {
		i := need(t)
		const namespace = "list-live"
		setUpReapply(t, i, namespace)
		if _, err := i.Apply.Create(t.Context(), podOf(t, "train", namespace, manifests["label"]), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		admin, somebody := i.Server.Kubeconfig, editorsFile(t, i, namespace)
		for _, who := range []string{admin, somebody} {
			command(t, who, "list", "-n", namespace).want(t, 0, "POD ", "train ", "memory=4Gi", "4Gi", "guard", "Pending")
			command(t, who, "list", "-n", namespace, "-o", "name", "-l", "gpuslice.dev/memory=4Gi").want(t, 0, "pod/train\n")
			command(t, who, "list", "-n", namespace, "-l", "gpuslice.dev/memory!=4Gi").want(t, 0, "No slices found in "+namespace+" namespace.")
			command(t, who, "list", "-n", namespace, "--node", "elsewhere").want(t, 0,
				"No slices found on node elsewhere in "+namespace+" namespace.")
		}
		command(t, admin, "list", "-A", "-o", "jsonpath={.items[?(@.namespace=='"+namespace+"')].memory}").want(t, 0, "4Gi")
		command(t, somebody, "list", "-A").want(t, 2, "forbidden", "gpuslice list -n NAMESPACE")
	})
}

func TestPools(t *testing.T) {
	t.Run("lists what nodes offer", func(t *testing.T) {
		i := need(t)
		const namespace = "pools-live"
		setUpReapply(t, i, namespace)
		if _, err := i.Apply.Create(t.Context(), podOf(t, "train", namespace, manifests["label"]), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		admin, somebody := i.Server.Kubeconfig, editorsFile(t, i, namespace)
		command(t, admin, "pools").want(t, 0, "ALLOCATABLE", "time-slicing", "NVIDIA-L4")
		command(t, admin, "pools", "-o", "jsonpath={.items[?(@.strategy=='time-slicing')].free}").want(t, 0, "8")
		command(t, somebody, "pools", "-n", namespace).want(t, 2, "read nodes", "forbidden",
			"shown are the pools of the slices in namespace "+namespace, "time-slicing")
	})
}

func TestPolicyShow(t *testing.T) {
	t.Run("shows who said what", func(t *testing.T) {
		i := need(t)
		const namespace = "policy-show"
		setUpReapply(t, i, namespace)
		own := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: api.TenantPolicyName},
			Data:       map[string]string{api.PolicyKey: "apiVersion: gpuslice.dev/v1\nlimits: {perPod: {memory: 8Gi}}\n"},
		}
		if _, err := i.Server.Client.CoreV1().ConfigMaps(namespace).Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		admin, somebody := i.Server.Kubeconfig, editorsFile(t, i, namespace)
		command(t, admin, "policy", "show", "-n", namespace).want(t, 0,
			"policy gpuslice-system/"+namespace+", tightened by "+namespace+"/gpuslice-policy",
			"limits.perPod.memory", "gpu-batch", "default")
		command(t, somebody, "policy", "show", "-n", namespace).want(t, 0,
			"policy gpuslice-system/"+namespace+", tightened by "+namespace+"/gpuslice-policy",
			"limits.perPod.memory   "+namespace+"/gpuslice-policy", "8Gi", "gpu-batch")
	})
}

func TestCommandsAndClaims(t *testing.T) {
	t.Run("explain, audit and quota count what pods claim", func(t *testing.T) {
		a := attacker(t, "quota: {slices: 3}\nclaims: count", nil)
		a.offerDevices(map[string]string{"gpu": "gpu.nvidia.com", "nic": "nic.example.test"})
		a.made("claims-a-gpu", claimedGPU("gpu"))
		a.awaitMade("claims-a-nic", claimedGPU("nic"))
		admin, claims := a.i.Server.Kubeconfig, "takes devices of class gpu."+a.namespace
		for _, who := range []string{admin, editorsFile(t, a.i, a.namespace)} {
			command(t, who, "explain", "claims-a-gpu", "-n", a.namespace).want(t, 0, `claim "c"`)
			command(t, who, "quota", "-n", a.namespace, "-o", "json").want(t, 0, `"pod": "claims-a-gpu"`, `"gpus": 1`)
		}
		command(t, admin, "explain", "claims-a-gpu", "-n", a.namespace).want(t, 0, claims)
		command(t, admin, "explain", "-f", manifest(t, "claims-a-gpu", "metadata:\n  labels: {}\n"+claimedGPU("gpu")), "-n", a.namespace).want(t,
			0, claims, "memory unknown, slices 1, GPUs 1")
		for what, said := range map[string]said{
			"explain": command(t, admin, "explain", "claims-a-nic", "-n", a.namespace), "quota": command(t, admin, "quota", "-n", a.namespace),
		} {
			if strings.Contains(said.out, "takes devices") || what == "quota" && strings.Contains(said.out, "claims-a-nic") {
				t.Errorf("%s counts a network card: %s", what, said.out)
			}
		}
		for setting, denied := range map[string]string{"claims: deny": claims, "quota: {slices: 0}\nclaims: count": "exceeded quota"} {
			policy := filepath.Join(t.TempDir(), "policy.yaml")
			text := "apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\n" + setting + "\nnamespaces: {names: [" + a.namespace + "]}\n"
			if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			command(t, admin, "audit", "-n", a.namespace, "--policies", policy).want(t, 3, "would deny 1,", denied)
		}
	})
}
