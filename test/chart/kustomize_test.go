package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

const base = "../../deploy"

// TestKustomize is the other way to install: the same objects, and the namespace.
func TestKustomize(t *testing.T) {
	t.Parallel()
	t.Run("kubectl applies the folder and removes it", func(t *testing.T) {
		t.Parallel()
		s := cluster.ForTest(t, cluster.Options{ControllerManager: true})
		before := objects(t, s.Config)
		want := byName(t, manifests(t))
		got := kustomize(t, s, base)
		if got["Namespace "+api.SystemNamespace] == nil {
			t.Error("the namespace is missing")
		}
		delete(got, "Namespace "+api.SystemNamespace)
		if diff := cmp.Diff(want, got, folded()); diff != "" {
			t.Errorf("(-manifest +kustomize)\n%s", diff)
		}
		for _, args := range [][]string{
			{"apply", "--server-side", "--kustomize=" + base},
			{"delete", "mutatingwebhookconfigurations,validatingwebhookconfigurations", configuration},
			{"delete", "--ignore-not-found", "--timeout=2m", "--kustomize=" + base},
		} {
			if out, err := s.Kubectl(t.Context(), args...); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		awaitObjects(t, s.Config, before)
	})
}

// TestOverlay builds what the page tells people to write.
func TestOverlay(t *testing.T) {
	t.Parallel()
	t.Run("the README's names both images", func(t *testing.T) {
		t.Parallel()
		s := cluster.ForTest(t, cluster.Options{})
		page, err := os.ReadFile(filepath.Join(base, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(string(page), "```yaml\n")
		overlay, _, closed := strings.Cut(rest, "```")
		if !ok || !closed || !strings.Contains(overlay, "kind: Kustomization") {
			t.Fatalf("the first YAML of the page is no kustomization:\n%s", overlay)
		}
		text, err := s.Kubectl(t.Context(), "kustomize", beside(t, overlay))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, ":VERSION") {
			t.Errorf("an image keeps the name that it has in the base:\n%s", text)
		}
		moved, err := s.Kubectl(t.Context(), "kustomize", beside(t, overlay+"namespace: gpu-admission\n"))
		if err != nil || !strings.Contains(moved, "--namespace="+api.SystemNamespace) || !strings.Contains(moved, "namespace: gpu-admission\n") {
			t.Errorf("%v: an overlay with another namespace changes every reference or none, not some as on the page", err)
		}
		for _, want := range []string{"image: HOST/gpuslice/webhook:TAG", "HOST/gpuslice/guard:TAG"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is missing:\n%s", want, text)
			}
		}
		if out, err := s.Kubectl(t.Context(), "apply", "--server-side", "-k", beside(t, overlay)); err != nil {
			t.Errorf("an API server denies the overlay: %v\n%s", err, out)
		}
		strict, err := s.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), "gpuslice-strict", metav1.GetOptions{})
		if err != nil || strict.Spec.Variables[0].Expression != "'HOST/gpuslice/guard:TAG'" || len(strict.Spec.Variables) < 2 {
			t.Errorf("%v: variables %v", err, strict.Spec.Variables)
		}
	})
}

// TestCertManagerComponent holds two ways to the same installation against each other, and applies the
// component's to an API server that knows cert-manager's types.
func TestCertManagerComponent(t *testing.T) {
	t.Parallel()
	t.Run("is the chart's source", func(t *testing.T) {
		t.Parallel()
		s := cluster.ForTest(t, cluster.Options{})
		folder := beside(t, `
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../gpuslice/deploy]
components: [../gpuslice/deploy/certmanager]
`)
		got := kustomize(t, s, folder)
		delete(got, "Namespace "+api.SystemNamespace)
		want := byName(t, withoutHelmLabels(t, newHelm(t, "").render(version("VERSION"), withCertManager, "--skip-tests")))
		if diff := cmp.Diff(want, got, folded()); diff != "" {
			t.Errorf("(-chart +component)\n%s", diff)
		}
		types, err := crds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		applyCRDs(t, s, types)
		if out, err := s.Kubectl(t.Context(), "apply", "--server-side", "--kustomize="+folder); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

// beside writes an overlay as people have it, in a folder of its own beside the checkout, and returns the folder.
func beside(t *testing.T, overlay string) string {
	t.Helper()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	for _, err := range []error{
		os.Symlink(checkout, filepath.Join(dir, "gpuslice")), os.Mkdir(own, 0o755),
		os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(overlay), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return own
}

// folded compares texts by their words: kustomize writes folded lines anew, and where they break means nothing in CEL.
func folded() cmp.Option {
	return cmp.Transformer("fold", func(text string) string { return strings.Join(strings.Fields(text), " ") })
}

func kustomize(t *testing.T, s *cluster.APIServer, folder string) map[string]any {
	t.Helper()
	text, err := s.Kubectl(t.Context(), "kustomize", folder)
	if err != nil {
		t.Fatal(err)
	}
	made, err := install.Objects([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return byName(t, made)
}
