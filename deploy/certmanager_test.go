package deploy_test

import (
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"sigs.k8s.io/yaml"
)

func TestCertManagerManifests(t *testing.T) {
	secrets := map[string]string{}
	for _, document := range strings.Split(read(t, "certmanager/certificate.yaml"), "\n---\n") {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatal(err)
		}
		var err error
		switch kind.Kind {
		case certmanager.IssuerKind:
			err = yaml.UnmarshalStrict([]byte(document), new(certmanager.Issuer))
		case certmanager.CertificateKind:
			var c certmanager.Certificate
			err = yaml.UnmarshalStrict([]byte(document), &c)
			secrets[c.Name] = c.Spec.SecretName
		default:
			t.Errorf("kind %q", kind.Kind)
		}
		if err != nil {
			t.Errorf("cert-manager does not read its %s: %v", kind.Kind, err)
		}
	}
	t.Run("the component mounts the certificate's Secret and injects the replicas' authorities", func(t *testing.T) {
		component := read(t, "certmanager/kustomization.yaml")
		for _, want := range []string{
			"secretName: " + secrets["gpuslice-webhook"], certmanager.WantInjectFromSecretAnnotation + ": gpuslice-system/gpuslice-authority",
		} {
			if !strings.Contains(component, want) {
				t.Errorf("it lacks %s", want)
			}
		}
	})
}
