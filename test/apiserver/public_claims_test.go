package apiserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// publicPolicy governs those who claim. HAMi's class is one of GPUs because the policy lists it.
const publicPolicy = `apiVersion: gpuslice.dev/v1
mode: transparent
strategies: [claim]
minimumEnforcement: guard
defaultSlice: {memory: 4Gi}
claims: deny
deviceClasses: [hami-core-gpu.project-hami.io]
`

// published is a document of testdata/claims, and what becomes of it: "policy" or "webhook" denies it, "slice", "admitted".
type published struct {
	example, governed, ungoverned string
	kind, name                    string
	text                          []byte
}

var expectedOf = regexp.MustCompile(`(?m)^# governed: (policy|webhook|slice|admitted); ungoverned: (admitted)$`)

// publicClaims are the documents in order, each template before the pods that name it.
func publicClaims(t *testing.T) (all []published) {
	t.Helper()
	files, err := filepath.Glob("testdata/claims/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, file := range files {
		if filepath.Base(file) == "classes.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		example := ""
		for _, document := range strings.Split(string(text), "\n---\n")[1:] {
			if title, _, _ := strings.Cut(document, "\n"); !strings.HasPrefix(title, "# governed: ") {
				example = filepath.Base(file) + ", " + strings.TrimPrefix(title, "# ")
				examples++
			}
			expected := expectedOf.FindStringSubmatch(document)
			if expected == nil {
				t.Fatalf("%s: a document without what becomes of it:\n%s", example, document)
			}
			var object metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatalf("%s: %v", example, err)
			}
			all = append(all, published{example, expected[1], expected[2], object.Kind, object.Name, []byte(document)})
		}
	}
	if examples < 40 {
		t.Fatalf("%d public claims: testdata is not all there", examples)
	}
	return all
}

// publicCluster is a node of shared memory, and the classes that the documents name.
func publicCluster(t *testing.T) pools.Source {
	t.Helper()
	source, err := scenarios.Published([]string{"dra-h100"}, []string{"nvidia-h100-shares-memory"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/claims/classes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		class := &resourcev1.DeviceClass{}
		if err := yaml.UnmarshalStrict([]byte(document), class); err != nil {
			t.Fatal(err)
		}
		source.Classes[class.Name] = class
	}
	return source
}

// TestPublicClaimsInCore decides on the pods of public claims as if the claims were there, and holds the audit against the policy.
func TestPublicClaimsInCore(t *testing.T) {
	source := publicCluster(t)
	s := scenarios.Scenario{Policy: []byte(publicPolicy), Nodes: source.Nodes, Slices: source.Slices,
		Classes: source.Classes, Namespace: api.Namespace{Name: "claims-public"}}
	specs := map[string]*resourcev1.ResourceClaimSpec{}
	for _, d := range publicClaims(t) {
		if d.kind != "Pod" {
			specs[d.name] = specOf(t, d)
			problem := s.Governed().GPUClaims().ClaimProblem(d.name, specs[d.name])
			if d.governed == "policy" && problem == "" && !forAdmins(specs[d.name]) {
				t.Errorf("%s: %s %s is denied by the policy, and the audit has nothing against one that is there", d.example, d.kind, d.name)
			}
			continue
		}
		in := s.Governed()
		in.Pod, in.Claims = &corev1.Pod{}, map[string]*resourcev1.ResourceClaimSpec{}
		if err := yaml.UnmarshalStrict(d.text, in.Pod); err != nil {
			t.Fatalf("%s: %v", d.example, err)
		}
		for _, c := range in.Pod.Spec.ResourceClaims {
			if spec := specs[nameOf(c)]; spec != nil {
				in.Claims[c.Name] = spec
			}
		}
		decided := policies.Decide(in)
		want := map[string]policies.Outcome{"webhook": policies.Denied, "slice": policies.Mutated, "admitted": policies.Unchanged}[d.governed]
		if decided.Outcome != want {
			t.Errorf("%s: pod %s is %s, want %s: %s", d.example, d.name, decided.Outcome, want, decided.Message())
		}
		if want == policies.Denied && !strings.Contains(decided.Message(), api.LabelMemory) {
			t.Errorf("%s: pod %s is denied without what to do: %s", d.example, d.name, decided.Message())
		}
	}
}

func specOf(t *testing.T, d published) *resourcev1.ResourceClaimSpec {
	t.Helper()
	claim, template := &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimTemplate{}
	if d.kind == "ResourceClaim" {
		if err := yaml.UnmarshalStrict(d.text, claim); err != nil {
			t.Fatalf("%s: %v", d.example, err)
		}
		return &claim.Spec
	}
	if err := yaml.UnmarshalStrict(d.text, template); err != nil {
		t.Fatalf("%s: %v", d.example, err)
	}
	return &template.Spec.Spec
}

func nameOf(c corev1.PodResourceClaim) string {
	if c.ResourceClaimName != nil {
		return *c.ResourceClaimName
	}
	return *c.ResourceClaimTemplateName
}

// forAdmins reports whether a claim holds no device: the audit has nothing against it, and it belongs in a namespace of its own.
func forAdmins(spec *resourcev1.ResourceClaimSpec) bool {
	e := spec.Devices.Requests[0].Exactly
	return e != nil && e.AdminAccess != nil && *e.AdminAccess
}

// TestPublicClaims has people create what the documents say, in a namespace under a policy and in one that gpuslice ignores. What
// the policy denies is there when pods name it, as in a namespace that had claims before.
func TestPublicClaims(t *testing.T) {
	i := need(t)
	const governed = "claims-public"
	documents := publicClaims(t)
	claimants(t, i, governed)
	before, err := install.NewApplier(i.Server.As("system:kube-controller-manager", "system:masters"))
	if err != nil {
		t.Fatal(err)
	}
	known, cancel := context.WithTimeout(t.Context(), time.Minute) // until the webhook has read all classes
	defer cancel()
	outcomes := map[string]int{}
	for _, d := range documents {
		for namespace, want := range map[string]string{governed: d.governed, ignoredNamespace: d.ungoverned} {
			var got string
			var denied error
			_ = wait.PollUntilContextCancel(known, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
				got, denied = d.tried(t, i.Apply, namespace)
				return got == want, nil
			}) // what differs is reported here
			if got != want {
				t.Errorf("%s: %s %s in namespace %s: %s, want %s: %v", d.example, d.kind, d.name, namespace, got, want, denied)
			}
			if denied != nil && !strings.Contains(denied.Error(), api.LabelMemory) {
				t.Errorf("%s: %s %s is denied without what to do: %v", d.example, d.kind, d.name, denied)
			}
			outcomes[namespace+" "+got]++
		}
		if d.kind == "Pod" {
			continue
		}
		if _, err := before.Create(t.Context(), d.object(t, governed), metav1.CreateOptions{}); err != nil {
			t.Errorf("%s: %s %s by Kubernetes itself: %v", d.example, d.kind, d.name, err)
		}
	}
	t.Logf("%d documents: %v", len(documents), outcomes)
}

// claimants prepares a cluster whose GPUs are shared out by claims, of two classes that are listed.
func claimants(t *testing.T, i *install.Installation, governed string) {
	t.Helper()
	source := publicCluster(t)
	own := publicPolicy + "namespaces: {names: [" + governed + "]}\n"
	admins := map[string]string{"resource.kubernetes.io/admin-access": "true"}
	// of other tests too
	const ignored = "{apiVersion: v1, kind: Namespace, metadata: {name: " + ignoredNamespace +
		", labels: {resource.kubernetes.io/admin-access: 'true'}}}"
	for _, err := range []error{
		i.Policy(t.Context(), "default", defaultPolicy("")), i.Nodes(t.Context(), source.Nodes...),
		i.Devices(t.Context(), source), i.Forget(t.Context()),
		i.Server.Namespace(t.Context(), governed, admins), i.Apply.Apply(t.Context(), []byte(ignored)),
		i.Server.DefaultAccount(t.Context(), ignoredNamespace),
		i.Policy(t.Context(), governed, []byte(own)), i.Settle(t.Context(), poolNames(t, source, defaultPolicy(""))...),
		closeClasses(t.Context(), i.Apply, "gpu.nvidia.com,mig.nvidia.com"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	probe := published{text: []byte("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: probe}\nspec: {devices: {requests: [{name: a, exactly: {deviceClassName: mig.nvidia.com}}]}}\n")}
	await := func(ctx context.Context, want string) {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			got, _ := probe.tried(t, i.Apply, governed)
			return got == want, nil
		})
		if err != nil {
			t.Errorf("the policy: %v", err)
		}
	}
	t.Cleanup(func() { // for the tests after this one
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(closeClasses(ctx, i.Apply, ""),
			i.Policy(ctx, governed, []byte(strings.Replace(own, "claims: deny", "claims: count", 1)))); err != nil {
			t.Error(err)
		}
		await(ctx, "admitted")
		everything := metav1.ListOptions{}
		client := i.Server.Client.ResourceV1()
		if err := client.ResourceClaimTemplates(governed).DeleteCollection(ctx, metav1.DeleteOptions{}, everything); err != nil {
			t.Error(err)
		}
		if err := client.ResourceClaims(governed).DeleteCollection(ctx, metav1.DeleteOptions{}, everything); err != nil {
			t.Error(err)
		}
		if err := i.Devices(ctx, pools.Source{}); err != nil {
			t.Error(err)
		}
	})
	await(t.Context(), "policy")
}

func (d published) object(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(d.text, &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace(namespace)
	return u
}

// tried is what becomes of a document, and why it is denied.
func (d published) tried(t *testing.T, apply *install.Applier, namespace string) (outcome string, denied error) {
	t.Helper()
	made, err := apply.Create(context.WithoutCancel(t.Context()), d.object(t, namespace),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case deniedClaim(err):
		return "policy", err
	case err != nil && strings.Contains(err.Error(), `gpuslice.dev" denied`):
		return "webhook", err
	case err != nil:
		return "denied by the server", err
	case made.GetAnnotations()[api.AnnotationPromise] != "":
		return "slice", nil
	}
	return "admitted", nil
}
