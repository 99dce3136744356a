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

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
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

// tenant is a kubeconfig of somebody who may edit one namespace, and nothing else. The role is the one that "edit" is
// made of where a controller manager runs.
func tenant(t *testing.T, i *install.Installation, namespace string) string {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-edit"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: namespace}},
	}
	if _, err := i.Server.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
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
func promised(t *testing.T, s said) policies.Promise {
	t.Helper()
	var list rendered
	if err := json.Unmarshal([]byte(s.out), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%v: %s\n%s", err, s.out, s.errs)
	}
	p, err := policies.DecodePromise(list.Items[0].Object.Metadata.Annotations[policies.AnnotationPromise])
	if err != nil {
		t.Fatal(err)
	}
	p.Signature = ""
	return *p
}

func TestRenderSaysWhatTheClusterDoes(t *testing.T) {
	i := need(t)
	const namespace = "render-live"
	setUpReapply(t, i, namespace)
	admin, file := i.Server.Kubeconfig, manifest(t, "train", manifests["label"])
	said := command(t, admin, "render", "-f", file, "-n", namespace, "-o", "json", "--guard-image", "gpuslice/guard:test")
	said.want(t, 0)
	asked := command(t, admin, "render", "-f", file, "-n", namespace, "-o", "json", "--server")
	asked.want(t, 0)
	read, real := promised(t, said), promised(t, asked)
	if read.Encode() != real.Encode() {
		t.Errorf("what was read leads to\n%s\nand the webhooks give\n%s", read.Encode(), real.Encode())
	}
	command(t, admin, "render", "-f", file, "-n", namespace, "--server", "-o", "diff").want(t, 0, "+    name: gpuslice-guard", "+    restartPolicy: Always", "rewritten: a 4Gi under time-slicing")
	command(t, admin, "explain", "-f", file, "-n", namespace, "--server").want(t, 0, "time-slicing", "CONTAINER")
	tooLarge := manifest(t, "large", strings.ReplaceAll(manifests["label"], "4Gi", "40Gi"))
	for _, how := range [][]string{{}, {"--server"}} {
		command(t, admin, append([]string{"render", "-f", tooLarge, "-n", namespace}, how...)...).want(t, 3, "refused", "40Gi")
	}
	command(t, admin, "policy", "lint").want(t, 0, "problems: 0")
	command(t, admin, "render", "-f", file, "-n", namespace, "--nodes", "../scenarios/nodes/l4-timeslicing-renamed.yaml").want(t, 0, "no --policies given")
	command(t, admin, "render", "-f", file, "-n", namespace, "--nodes", "../scenarios/nodes/l4-timeslicing-renamed.yaml", "--context", "test").want(t, 0, "rewritten")
}

func TestATenantIsToldHowToAskTheServer(t *testing.T) {
	i := need(t)
	const namespace = "render-tenant"
	setUpReapply(t, i, namespace)
	if err := i.Server.Namespace(t.Context(), "somebody-elses", nil); err != nil {
		t.Fatal(err)
	}
	somebody, file := tenant(t, i, namespace), manifest(t, "train", manifests["label"])
	command(t, somebody, "render", "-f", file, "-n", namespace).want(t, 2, "forbidden", "gpuslice render --server -f FILE -n "+namespace)
	command(t, somebody, "render", "-f", file, "-n", namespace, "--server").want(t, 0, "rewritten: a 4Gi under time-slicing")
	command(t, somebody, "render", "-f", file, "-n", "somebody-elses", "--server").want(t, 2, "you may not create it")
	command(t, somebody, "verify", "-n", namespace).want(t, 3, "may not be read")
	command(t, somebody, "doctor").want(t, 4, "nodes could not be read", "you may not do all")
}
