package certmanager

import (
	"bytes"
	"fmt"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Options are the names that an installation has.
type Options struct {
	// Namespace is gpuslice's own, Service that of the webhook there.
	Namespace, Service string
	// Secret gets the serving certificate, its key and its authority.
	Secret string
	// Bundle is the Secret by which the webhook's replicas agree on whom to trust (the webhook's --certs-secret).
	Bundle string
	Labels map[string]string
}

// AnnotationInject makes the cainjector copy a Secret's ca.crt into every entry of a webhook configuration.
const AnnotationInject = certmanager.WantInjectFromSecretAnnotation

// Injection is the value of AnnotationInject on the webhook configurations. It names the webhook's own Secret, where old and new
// authority stand together while one follows the other: a Certificate's Secret holds the latest alone.
func (o Options) Injection() string { return o.Namespace + "/" + o.Bundle }

// Lifetimes. Every new certificate has a new key, the authority's too: the webhook takes care of what changes with it.
const (
	authorityLife = 5 * 365 * 24 * time.Hour
	leafLife      = 90 * 24 * time.Hour
)

// Manifests returns an authority for the webhook alone, and its serving certificate. Whoever has an issuer of their own
// needs the last object only, with that issuer's name; it has to fill in the Secret's ca.crt.
func Manifests(o Options) []runtime.Object {
	authority, root := o.Service+"-authority", o.Service+"-root"
	return []runtime.Object{
		o.issuer(root, certmanager.IssuerConfig{SelfSigned: &certmanager.SelfSignedIssuer{}}),
		o.certificate(authority, certmanager.CertificateSpec{
			IsCA: true, CommonName: "gpuslice webhook authority", SecretName: authority,
			Duration: &metav1.Duration{Duration: authorityLife}, IssuerRef: issuerNamed(root),
		}),
		o.issuer(authority, certmanager.IssuerConfig{CA: &certmanager.CAIssuer{SecretName: authority}}),
		o.certificate(o.Service, certmanager.CertificateSpec{
			SecretName: o.Secret, Duration: &metav1.Duration{Duration: leafLife}, IssuerRef: issuerNamed(authority),
			DNSNames: []string{o.Service + "." + o.Namespace + ".svc", o.Service + "." + o.Namespace + ".svc.cluster.local"},
			Usages:   []certmanager.KeyUsage{certmanager.UsageDigitalSignature, certmanager.UsageServerAuth},
		}),
	}
}

func issuerNamed(name string) cmmeta.IssuerReference {
	return cmmeta.IssuerReference{Name: name, Kind: certmanager.IssuerKind, Group: certmanager.SchemeGroupVersion.Group}
}

func (o Options) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: o.Namespace, Labels: o.Labels}
}

func (o Options) issuer(name string, config certmanager.IssuerConfig) *certmanager.Issuer {
	return &certmanager.Issuer{
		TypeMeta:   metav1.TypeMeta{APIVersion: certmanager.SchemeGroupVersion.String(), Kind: certmanager.IssuerKind},
		ObjectMeta: o.meta(name), Spec: certmanager.IssuerSpec{IssuerConfig: config},
	}
}

func (o Options) certificate(name string, spec certmanager.CertificateSpec) *certmanager.Certificate {
	spec.PrivateKey = &certmanager.CertificatePrivateKey{
		Algorithm: certmanager.ECDSAKeyAlgorithm, Size: 256, RotationPolicy: certmanager.RotationPolicyAlways,
	}
	return &certmanager.Certificate{
		TypeMeta:   metav1.TypeMeta{APIVersion: certmanager.SchemeGroupVersion.String(), Kind: certmanager.CertificateKind},
		ObjectMeta: o.meta(name), Spec: spec,
	}
}

// YAML prints the manifests as one stream, without what only a server writes.
func YAML(objects []runtime.Object) ([]byte, error) {
	var out bytes.Buffer
	for i, object := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("read fields: %w", err)
		}
		delete(fields, "status")
		text, err := yaml.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("print manifest: %w", err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}
