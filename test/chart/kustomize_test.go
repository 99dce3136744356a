package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

const base = "../../deploy"

// TestKubectlAppliesTheFolderAndRemovesIt is the other way to install: the same objects, and the namespace.
func TestKubectlAppliesTheFolderAndRemovesIt(t *testing.T) {
	t.Parallel()
	s := cluster.ForTest(t, cluster.Options{ControllerManager: true})
	before := objects(t, s.Config)
	want := byName(t, manifests(t))
	got := kustomize(t, s, base)
	if got["Namespace "+policies.SystemNamespace] == nil {
		t.Error("the namespace is missing")
	}
	delete(got, "Namespace "+policies.SystemNamespace)
	// kustomize writes folded lines anew, and where they break means nothing in CEL.
	folded := cmp.Transformer("fold", func(text string) string { return strings.Join(strings.Fields(text), " ") })
	if diff := cmp.Diff(want, got, folded); diff != "" {
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
}

// TestTheOverlayOfTheReadmeNamesBothImages builds what the page tells people to write.
func TestTheOverlayOfTheReadmeNamesBothImages(t *testing.T) {
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
	text, err := s.Kubectl(t.Context(), "kustomize", own)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, ":VERSION") {
		t.Errorf("an image keeps the name that it has in the base:\n%s", text)
	}
	for _, want := range []string{"image: HOST/gpuslice/webhook:TAG", "HOST/gpuslice/guard:TAG"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
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
