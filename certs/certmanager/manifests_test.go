package certmanager_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/certs/certmanager"
)

var update = flag.Bool("update", false, "rewrite deploy/certmanager/certificate.yaml")

const header = `# Made by "go test ./certs/certmanager -update" from cert-manager's own types: an authority for the webhook alone, and its
# serving certificate.
`

// shipped are the names in deploy.
func shipped() certmanager.Options {
	return certmanager.Options{
		Namespace: "gpuslice-system", Service: "gpuslice-webhook", Secret: "gpuslice-webhook-tls", Bundle: "gpuslice-authority",
		Labels: map[string]string{"app.kubernetes.io/name": "gpuslice", "app.kubernetes.io/component": "webhook"},
	}
}

func TestTheComponentInjectsTheBundleAndMountsTheSecret(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/certmanager/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{certmanager.AnnotationInject + ": " + shipped().Injection(), "secretName: " + shipped().Secret} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it lacks %s", want)
		}
	}
}

func TestTheManifestIsWhatTheTypesSay(t *testing.T) {
	t.Parallel()
	text, err := certmanager.YAML(certmanager.Manifests(shipped()))
	if err != nil {
		t.Fatal(err)
	}
	got := header + string(text)
	const path = "../../deploy/certmanager/certificate.yaml"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
