package apiserver

import (
	"errors"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/markdown"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// TestPages applies what the pages about platforms and other software show, as their readers do: the policy, then the objects, and
// the pods that a page tells the outcome of.
func TestPages(t *testing.T) {
	i := need(t)
	all, err := markdown.Pages(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	applied := map[string]int{}
	for _, p := range all {
		if folder := path.Dir(p.Path); folder != "deploy/howto" && folder != "deploy/recipes" {
			continue
		}
		name := strings.ToLower(strings.NewReplacer("/", "-", ".md", "").Replace(p.Path))
		t.Run(name, func(t *testing.T) {
			a := &applying{T: t, i: i, name: name, pools: defaultPolicy(""), applied: applied}
			if err := i.Policy(t.Context(), "default", a.pools); err != nil {
				t.Fatal(err)
			}
			a.enter(name, nil)
			for _, b := range p.Blocks() {
				a.block(b)
			}
		})
	}
	for _, what := range []string{"policies", "objects", "pods"} {
		if applied[what] == 0 {
			t.Errorf("no page shows %s: this test does not see them", what)
		}
	}
}

// applying is a reader of a page, with the last policy and pod that it shows.
type applying struct {
	*testing.T
	i         *install.Installation
	name      string
	namespace string // that the page's policy governs
	pools     []byte // the policy by which pools are known
	pod       *unstructured.Unstructured
	applied   map[string]int
}

func (a *applying) block(b markdown.Block) {
	a.Helper()
	if nodes, ok := strings.CutPrefix(b.Info, "text tried on "); ok {
		a.try(b, nodes)
		return
	}
	for _, file := range b.Files() {
		text, err := os.ReadFile(path.Join("../..", file))
		if err != nil {
			a.Errorf("%s: %v", b.Where(), err)
		}
		a.documents(b, string(text))
	}
	if language, _, _ := strings.Cut(b.Info, " "); language == "yaml" && !strings.Contains(b.Text, "...") {
		a.documents(b, b.Text)
	}
}

// documents applies YAML documents, and keeps a pod until the page tells what becomes of it.
func (a *applying) documents(b markdown.Block, text string) {
	a.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			continue // a list, for another file
		}
		switch {
		case u.GetAPIVersion() == config.APIVersion && u.GetKind() == "":
			a.govern(b, []byte(document))
		case u.GetLabels()[api.LabelPolicy] == "true":
			policy, _, _ := unstructured.NestedString(u.Object, "data", "policy.yaml")
			a.govern(b, []byte(policy))
		case u.GetKind() == "Pod" && u.GetAPIVersion() == "v1":
			a.pod = u
		case u.GetKind() != "" && u.GetAPIVersion() != "":
			a.object(b, u)
		}
	}
}

// govern puts a policy into force: for the cluster, or for the namespaces that it names.
func (a *applying) govern(b markdown.Block, document []byte) {
	a.Helper()
	policy, problems := config.Parse(a.name, document)
	if len(problems) > 0 {
		a.Fatalf("%s: %v", b.Where(), problems.ToAggregate())
	}
	name := a.name
	switch of := policy.Namespaces; {
	case of == nil:
		name, a.pools = "default", document
	case len(of.Names) > 0:
		a.enter(of.Names[0], nil)
	default:
		a.enter(a.name+"-selected", of.Selector.MatchLabels)
	}
	if err := a.i.Policy(a.Context(), name, document); err != nil {
		a.Fatalf("%s: %v", b.Where(), err)
	}
	a.applied["policies"]++
}

// enter makes a namespace that of the page's pods.
func (a *applying) enter(namespace string, labels map[string]string) {
	a.Helper()
	if err := a.i.Server.Namespace(a.Context(), namespace, labels); err != nil && !apierrors.IsAlreadyExists(errors.Unwrap(err)) {
		a.Fatal(err)
	}
	a.namespace = namespace
}

// object has the API server take an object, without storing it. It knows the kinds of Kubernetes alone.
func (a *applying) object(b markdown.Block, u *unstructured.Unstructured) {
	a.Helper()
	if u.GetNamespace() == "" {
		u.SetNamespace(a.namespace)
	} else if err := a.i.Server.Namespace(a.Context(), u.GetNamespace(), nil); err != nil && !apierrors.IsAlreadyExists(errors.Unwrap(err)) {
		a.Fatal(err)
	}
	_, err := a.i.Apply.Create(a.Context(), u,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	switch {
	case meta.IsNoMatchError(errors.Unwrap(err)) && strings.Contains(u.GetAPIVersion(), "."):
	case err != nil:
		a.Errorf("%s: %s: %v", b.Where(), u.GetKind(), err)
	default:
		a.applied["objects"]++
	}
}

// try creates the page's pod, where the page tells what becomes of it.
func (a *applying) try(b markdown.Block, nodes string) {
	a.Helper()
	source, err := scenarios.Tried(nodes)
	if err != nil {
		a.Fatalf("%s: %v", b.Where(), err)
	}
	for _, err := range []error{a.i.Nodes(a.Context(), source.Nodes...), a.i.Devices(a.Context(), source), a.i.Forget(a.Context()),
		a.i.Settle(a.Context(), poolNames(a.T, source, a.pools)...)} {
		if err != nil {
			a.Fatal(err)
		}
	}
	u := a.pod.DeepCopy()
	u.SetNamespace(a.namespace)
	u.SetName("")
	u.SetGenerateName(a.pod.GetName() + "-")
	made, err := a.i.Apply.Create(a.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		a.Fatalf("%s: %v", b.Where(), err)
	}
	given := promise.ClaimedPromise(asPod(a.T, made))
	if given == nil {
		a.Fatalf("%s: the pod gets no slice", b.Where())
	}
	stored := regexp.MustCompile(`(?m)^warning: .*\n`).ReplaceAllString(b.Text, "") // the pod keeps none; deploy's TestPagePods has them
	if diff := cmp.Diff(stored, b.Elide(scenarios.Told(policies.Decision{Promise: given, Planned: &given.Planned}))); diff != "" {
		a.Errorf("%s (-page +what comes out):\n%s", b.Where(), diff)
	}
	a.applied["pods"]++
}
