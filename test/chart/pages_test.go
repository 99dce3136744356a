package chart

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/markdown"
)

// reader follows the pages on a node.
type reader struct {
	*testing.T
	node   *install.OnNode
	runner markdown.Runner
	left   []markdown.Block // that hold commands, and have not run
	ran    []markdown.Block
}

// TestPages runs the commands of all pages, as they are written there: on an installation by Helm, and on one by kustomize. The first
// pages of a newcomer come before anything that another page creates.
func TestPages(t *testing.T) {
	n := bareNode(t)
	before := objects(t, n.Config)
	r := newReader(t, n)

	installation := r.take("deploy/README.md", "Install with Helm")
	r.run(installation[:1])
	if err := n.Settle(t.Context(), install.SharedResource); err != nil {
		t.Fatal(err)
	}
	r.follow("README.md", "Quickstart")
	r.firstSlice()
	r.run(installation[1:])
	r.tenants()
	const warnings = 4 // of doctor: this node has no DaemonSet of NVIDIA's container toolkit
	r.follow("deploy/TROUBLESHOOTING.md", "Troubleshooting", warnings)
	r.follow("deploy/namespaces.md", "Bypass")
	r.follow("certs/README.md", "Rotate the promise key")
	r.emergency("Restore with Helm")
	r.remove(before)

	page, err := os.ReadFile(filepath.Join(base, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	overlay, _, _ := strings.Cut(rest, "```")
	r.runner.Words = append(r.runner.Words, "OVERLAY", beside(t, strings.NewReplacer(r.runner.Words...).Replace(overlay)))
	r.follow("deploy/README.md", "Install with kustomize")
	if err := n.AwaitWebhook(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Policy(t.Context(), "default", []byte("apiVersion: gpuslice.dev/v1\n")); err != nil {
		t.Fatal(err)
	}
	if err := n.Settle(t.Context(), install.SharedResource); err != nil {
		t.Fatal(err)
	}
	r.tenants()
	r.emergency("Restore with kustomize")
	r.remove(before)
	for _, b := range r.left {
		t.Errorf("%s: nothing runs these commands: follow the page here, or mark them as \"sh not run: REASON\"", b.Where())
	}
}

func newReader(t *testing.T, n *install.OnNode) *reader {
	t.Helper()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := markdown.Pages(os.DirFS(checkout))
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{T: t, node: n}
	for _, p := range pages {
		for _, b := range p.Blocks() {
			if commands, _ := b.Commands(); commands != "" {
				r.left = append(r.left, b)
			}
		}
	}
	programs, home := t.TempDir(), t.TempDir()
	for name, path := range map[string]string{
		"kubectl": n.Program("kubectl"), "helm": filepath.Join(box.Dir(), helmFile), "gpuslice": install.Command(box.Dir()),
	} {
		if err := os.Symlink(path, filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.runner = markdown.Runner{
		Dir: checkout, Env: []string{"HOME=" + home, "KUBECONFIG=" + n.Kubeconfig, "PATH=" + programs + ":" + os.Getenv("PATH")},
		Words: []string{"HOST/", "", "TAG", install.Tag, "POD", "sliced", "deployment/NAME", "deployment/trainers", "NAMESPACE", team},
	}
	return r
}

// follow runs the commands of a page's section, and returns what they print. They end with 0, or one of the exit codes.
func (r *reader) follow(page, section string, codes ...int) (printed string) {
	r.Helper()
	return r.run(r.take(page, section), codes...)
}

// take returns the blocks of a page's section, which are left no longer.
func (r *reader) take(page, section string) (taken []markdown.Block) {
	r.Helper()
	of := func(b markdown.Block) bool { return b.Page == page && b.Section == section }
	for _, b := range append(slices.Clone(r.left), r.ran...) {
		if of(b) {
			taken = append(taken, b)
		}
	}
	if taken == nil {
		r.Fatalf("%s has no commands in section %q", page, section)
	}
	if slices.ContainsFunc(r.left, of) {
		r.left = slices.DeleteFunc(r.left, of)
		r.ran = append(r.ran, taken...)
	}
	return taken
}

func (r *reader) run(blocks []markdown.Block, codes ...int) (printed string) {
	r.Helper()
	for _, b := range blocks {
		out, err := r.runner.Run(r.Context(), b)
		var exit *exec.ExitError
		if err != nil && !(errors.As(err, &exit) && slices.Contains(codes, exit.ExitCode())) {
			r.Fatal(err)
		}
		if b.Prints != "" {
			r.awaitOutput(b)
		}
		printed += out
	}
	return printed
}

// firstSlice follows the page until all its pods run or have ended well, and removes what it made.
func (r *reader) firstSlice() {
	r.Helper()
	const page = "deploy/recipes/first-slice.md"
	r.follow(page, "Your first slice")
	eventually(r.T, time.Minute, func() string {
		pods, err := r.node.Client.CoreV1().Pods(team).List(r.Context(),
			metav1.ListOptions{LabelSelector: api.LabelTier + "=" + string(api.TierGuard)})
		if err != nil {
			return err.Error()
		}
		if want := 4; len(pods.Items) != want {
			return fmt.Sprintf("%d pods with a slice, and %s has %d", len(pods.Items), page, want)
		}
		for _, p := range pods.Items {
			if p.Status.Phase != corev1.PodRunning && p.Status.Phase != corev1.PodSucceeded {
				return fmt.Sprintf("pod %s is %+v", p.Name, p.Status)
			}
		}
		return ""
	})
	if _, err := r.node.Kubectl(r.Context(), "delete", "-f",
		filepath.Join(r.runner.Dir, "deploy/recipes/first-slice/policy.yaml"), "--timeout=2m"); err != nil {
		r.Fatal(err)
	}
}

// awaitOutput runs commands that only read until they print what the page says: what is observed comes later.
func (r *reader) awaitOutput(b markdown.Block) {
	r.Helper()
	eventually(r.T, time.Minute, func() string {
		out, err := r.runner.Run(r.Context(), b)
		if err != nil || shape(out) != shape(b.Prints) {
			return fmt.Sprintf("%s prints (%v)\n%s\nand the page says\n%s", b.Where(), err, out, b.Prints)
		}
		return ""
	})
}

// ages differ from run to run, and with them the columns' widths.
var ages = regexp.MustCompile(`\b\d+[smhd]\b`)

func shape(printed string) string {
	return strings.Join(strings.Fields(ages.ReplaceAllString(printed, "AGE")), " ")
}

// tenants creates a namespace with a pod and a Deployment of slices.
func (r *reader) tenants() {
	r.Helper()
	if err := r.node.Settle(r.Context(), install.SharedResource); err != nil {
		r.Fatal(err)
	}
	if err := r.node.Namespace(r.Context(), team, nil); err != nil {
		r.Fatal(err)
	}
	runsInASlice(r.T, r.node)
	labels := map[string]string{"app": "trainers"}
	pod := tenant("")
	pod.Labels["app"] = "trainers"
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "trainers"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}}}
	if _, err := r.node.Client.AppsV1().Deployments(team).Create(r.Context(), d, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// emergency follows the page out and back.
func (r *reader) emergency(back string) {
	r.Helper()
	const page = "deploy/EMERGENCY.md"
	out := r.follow(page, "Emergency: remove gpuslice from the path")
	if !strings.Contains(out, team+" sliced") {
		r.Errorf("the page does not list the pods with a slice:\n%s", out)
	}
	if p := r.asked(); unsliced(p) == "" {
		r.Error("a pod is still changed")
	}
	r.follow(page, back)
	if why := unsliced(r.asked()); why != "" {
		r.Errorf("after the way back a pod gets no slice: %s", why)
	}
}

// asked is what a pod would come out as.
func (r *reader) asked() *corev1.Pod {
	r.Helper()
	p, err := r.node.Client.CoreV1().Pods(team).Create(r.Context(), tenant("asking"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// remove follows the page until nothing is left.
func (r *reader) remove(before []string) {
	r.Helper()
	if err := r.node.Client.CoreV1().Namespaces().Delete(r.Context(), team, metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
	r.follow("deploy/README.md", "Remove")
	awaitObjects(r.T, r.node.Config, before)
}
