package chart

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/install"
)

// left is what every installation writes while it runs, and Helm knows nothing of: deploy/README.md says how it goes.
var left = []string{
	"Namespace  " + api.SystemNamespace,
	"ConfigMap " + api.SystemNamespace + " gpuslice-state",
	"Lease " + api.SystemNamespace + " gpuslice-leader",
	"Secret " + api.SystemNamespace + " gpuslice-promise-keys",
}

// source is one that the chart takes certificates from.
type source struct {
	name string
	// values prepares what a user of the source has ready, and returns what they say to Helm.
	values func(*testing.T, *install.OnNode) []string
	// left is what an installation with it leaves beside left.
	left []string
	// from, where there is one, are values of the installation that the upgrade changes to this source.
	from string
}

// sources are all of them. cert-manager keeps the Secrets of Certificates that are gone, unless it runs with
// --enable-certificate-owner-ref: they go with the namespace.
func sources() []source {
	secret := func(name string) string { return "Secret " + api.SystemNamespace + " " + name }
	nothing := func(*testing.T, *install.OnNode) []string { return nil }
	certManager := func(*testing.T, *install.OnNode) []string { return []string{withCertManager} }
	self := []string{secret("gpuslice-authority")}
	issued := append(self, secret("gpuslice-webhook-authority"), secret("gpuslice-webhook-tls"))
	return []source{
		{name: "self", values: nothing, left: self},
		{name: "files", values: keepCertificate, left: []string{secret(kept)}},
		{name: "cert-manager", values: certManager, left: issued},
		{name: "from self to cert-manager", values: certManager, left: issued, from: "--set=certificates.source=self"},
	}
}

const (
	withCertManager = "--set=certificates.source=cert-manager"

	// kept is the Secret of somebody who keeps a certificate.
	kept = "kept"
)

// keepCertificate writes a serving certificate as somebody who has one keeps it.
func keepCertificate(t *testing.T, n *install.OnNode) []string {
	t.Helper()
	serving, err := n.ServingCertificate(kept, "gpuslice-webhook."+api.SystemNamespace+".svc")
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(serving.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Namespace(t.Context(), api.SystemNamespace, nil); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: kept}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: serving.Certificates[0].Certificate[0]}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}}
	if _, err := n.Client.CoreV1().Secrets(api.SystemNamespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, n.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--set=certificates.source=files,certificates.files.secretName=" + kept,
		"--set-file=certificates.files.caBundle=" + authority}
}

// crdsFile is where the node's box has cert-manager's CustomResourceDefinitions.
const crdsFile = "cert-manager.yaml"

// crds are cert-manager's types, as one stream.
func crds(ctx context.Context) ([]byte, error) {
	files, err := cluster.CertManagerCRDs(ctx)
	return bytes.Join(files, []byte("\n---\n")), err
}

// prepareCertManager leaves what startCertManager needs in a box's folder.
func prepareCertManager(ctx context.Context, dir string) error {
	if err := cluster.AddPrograms(ctx, os.Stderr, dir, cluster.CertManager()...); err != nil {
		return err
	}
	text, err := crds(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, crdsFile), text, 0o600)
}

// startCertManager runs cert-manager's own controllers and cainjector beside the node, as they are by default.
func startCertManager(t *testing.T, n *install.OnNode) {
	t.Helper()
	types, err := os.ReadFile(filepath.Join(box.Dir(), crdsFile))
	if err != nil {
		t.Fatal(err)
	}
	applyCRDs(t, n.APIServer, types)
	if err := n.StartCertManager(""); err != nil {
		t.Fatal(err)
	}
}

// applyCRDs gives an API server cert-manager's types, and waits until it takes objects of them.
func applyCRDs(t *testing.T, s *cluster.APIServer, types []byte) {
	t.Helper()
	apply, err := install.NewApplier(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	if err := apply.Apply(t.Context(), types); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func() string {
		if out, err := s.Kubectl(t.Context(), "get", "certificates.cert-manager.io,issuers.cert-manager.io"); err != nil {
			return out + err.Error()
		}
		return ""
	})
}
