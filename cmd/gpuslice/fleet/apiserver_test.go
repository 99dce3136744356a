package fleet_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/source"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/commandline"
)

// TestFleetOnAPIServer makes the world of testdata/fleet.txtar on an API server, with more pods than one page of a list has: the snapshot
// has what the golden one has, and plan and page print the same of the cluster as of the snapshot.
func TestFleetOnAPIServer(t *testing.T) {
	server := cluster.ForTest(t,
		cluster.Options{Flags: []string{"--disable-admission-plugins=TaintNodesByCondition,Priority,DefaultTolerationSeconds"}})
	archive, err := txtar.ParseFile("testdata/fleet.txtar")
	if err != nil {
		t.Fatal(err)
	}
	folder, golden := t.TempDir(), []byte(nil)
	for _, f := range archive.Files {
		if f.Name == "want/fleet.json" {
			golden = f.Data
		}
		if !strings.HasPrefix(f.Name, "metrics/") {
			commandline.Write(t, filepath.Join(folder, f.Name), f.Data)
		}
	}
	t.Chdir(folder)
	create(t, server, commandline.World{Folders: []string{"live"}, Nodes: "nodes.yaml"})
	t.Setenv(clientcmd.RecommendedConfigPathEnvVar, server.Kubeconfig)

	answers := map[string]string{}
	for _, args := range []string{"snapshot -o fleet.json.gz", "plan -o json", "plan --from fleet.json.gz -o json",
		"page -o live.html", "page --from fleet.json.gz -o file.html"} {
		answers[args] = commandline.Answer(t, args)
	}
	if live := answers["plan -o json"]; live != answers["plan --from fleet.json.gz -o json"] || !strings.Contains(live, `"kind": "Plan"`) {
		t.Errorf("the plan of the cluster is not that of its snapshot:\n%s", cmp.Diff(live, answers["plan --from fleet.json.gz -o json"]))
	}
	var pages [2][]byte
	for i, name := range []string{"live.html", "file.html"} {
		if pages[i], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(pages[0], pages[1]) || !bytes.Contains(pages[0], []byte(`"name":"busy"`)) {
		t.Errorf("the page of the cluster (%d bytes) is not that of its snapshot (%d bytes)", len(pages[0]), len(pages[1]))
	}
	got, err := source.ReadFile("fleet.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	want, err := inventory.Read(bytes.NewReader(golden))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Unread) != 1 || !strings.HasPrefix(got.Unread[0], "the usage of 1 containers is unknown: ") {
		t.Errorf("unread: %q", got.Unread)
	}
	if diff := cmp.Diff(ofCluster(t, want), ofCluster(t, got)); diff != "" {
		t.Errorf("the snapshot (-golden +API server):\n%s", diff)
	}
	liveChanges(t)
	leastRights(t, server, answers["plan --from fleet.json.gz -o json"])
}

// leastRights: whoever may list nodes and pods gets a plan, with notes on what it lacks.
func leastRights(t *testing.T, server *cluster.APIServer, full string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "planner"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list"}}}}
	if _, err := server.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "planner"}}}
	if _, err := server.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	type numbers struct {
		Devices, Waiting any
		Notes            []string
	}
	var all, few numbers
	for text, into := range map[string]*numbers{full: &all, commandline.Answer(t, "plan --as planner -o json"): &few} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	if diff := cmp.Diff([]any{all.Devices, all.Waiting}, []any{few.Devices, few.Waiting}); diff != "" {
		t.Errorf("the plan (-administrator +least rights):\n%s", diff)
	}
	for _, want := range []string{"pools of dynamic resource allocation are unknown: ",
		"pools that policies declare are unknown: ", "quotas are unknown: "} {
		if !strings.Contains(strings.Join(few.Notes, "\n"), want) {
			t.Errorf("no note has %q: %q", want, few.Notes)
		}
	}
}

// ofCluster is a fleet as text, without what the API server of a test sets or cannot measure.
func ofCluster(t *testing.T, f *inventory.Fleet) string {
	t.Helper()
	f.Unread = nil
	for i := range f.Pods {
		p := &f.Pods[i]
		p.Created, p.Bound, p.SchedulerName = time.Time{}, time.Time{}, ""
		for j := range p.Slices {
			p.Slices[j].Usage = nil
		}
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return commandline.Steady(string(text))
}

// create makes a world's objects on an API server, and pods without GPUs.
func create(t *testing.T, server *cluster.APIServer, w commandline.World) {
	t.Helper()
	client, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"agents", "free", "gpuslice-system", "nvidia"} {
		if err := server.Namespace(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range w.Objects(t) {
		if o.GetKind() == "Namespace" {
			continue
		}
		resource := client.Resource(o.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(o.GetKind()) + "s")).
			Namespace(o.GetNamespace())
		made, err := resource.Create(t.Context(), o, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if status := o.Object["status"]; o.GetKind() == "Pod" && status != nil {
			made.Object["status"] = status
			if _, err := resource.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
				t.Fatalf("status of %s: %v", o.GetName(), err)
			}
		}
	}
	for i := range 500 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cpu-%03d", i)},
			Spec: corev1.PodSpec{NodeName: "cpu-1", Containers: []corev1.Container{{Name: "main", Image: "web"}}}}
		if _, err := server.Client.CoreV1().Pods("free").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
