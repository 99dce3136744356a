package doctor

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// byCertManager is an installation whose certificate cert-manager keeps, as deploy/certmanager has it: all is ready, and the CA
// injector runs.
func byCertManager(t *testing.T, f *Facts) {
	installedWith(3, bundle(t, 365*day))(t, f)
	f.Mutating[0].Annotations = map[string]string{certmanager.WantInjectFromSecretAnnotation: api.SystemNamespace + "/gpuslice-authority"}
	pod := &f.Deployment.Spec.Template.Spec
	pod.Containers = []corev1.Container{{Name: "webhook", Args: []string{"--certs=cert-manager", "--certs-file=/certificate/tls.crt"},
		VolumeMounts: []corev1.VolumeMount{{Name: "certificate", MountPath: "/certificate"}}}}
	pod.Volumes = []corev1.Volume{{Name: "certificate", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "gpuslice-webhook-tls"}}}}
	f.Groups = append(f.Groups, certmanager.SchemeGroupVersion.String())
	f.Injector = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: injectorLease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("cainjector-1"), RenewTime: new(metav1.NewMicroTime(at.Add(-time.Minute)))}}
	manifest, err := os.ReadFile("../../../deploy/certmanager/certificate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		written(document)(t, f)
	}
	for _, i := range f.Issuers {
		i.Status.Conditions = []certmanager.IssuerCondition{{Type: certmanager.IssuerConditionReady, Status: cmmeta.ConditionTrue}}
	}
	for _, c := range f.Certificates {
		c.Status = certmanager.CertificateStatus{
			RenewalTime: new(metav1.NewTime(at.Add(30 * day))), NotAfter: new(metav1.NewTime(at.Add(90 * day))),
			Conditions: []certmanager.CertificateCondition{{Type: certmanager.CertificateConditionReady, Status: cmmeta.ConditionTrue}},
		}
	}
}

// certificate changes one of byCertManager's Certificates.
func certificate(name string, edit func(*certmanager.Certificate)) change {
	return func(t *testing.T, f *Facts) {
		for _, c := range f.Certificates {
			if c.Name == name {
				edit(c)
				return
			}
		}
		t.Fatalf("no Certificate is called %s", name)
	}
}

// failed is a Certificate that cert-manager could not issue.
func failed(c *certmanager.Certificate) {
	c.Status = certmanager.CertificateStatus{Conditions: []certmanager.CertificateCondition{
		{Type: certmanager.CertificateConditionReady, Status: cmmeta.ConditionFalse, Reason: "DoesNotExist", Message: "Secret does not exist"},
		{Type: certmanager.CertificateConditionIssuing, Status: cmmeta.ConditionFalse, Reason: "Failed", Message: "the request was denied"},
	}}
}

// certificateRows are about certificates from cert-manager.
func certificateRows(t *testing.T) []row {
	const serving, authority = "gpuslice-webhook", "gpuslice-webhook-authority"
	renewal := func(since time.Duration) func(*certmanager.Certificate) {
		return func(c *certmanager.Certificate) { c.Status.RenewalTime = new(metav1.NewTime(at.Add(-since))) }
	}
	clusterIssuer := certificate(serving, func(c *certmanager.Certificate) {
		c.Spec.IssuerRef = cmmeta.IssuerReference{Kind: certmanager.ClusterIssuerKind, Name: "company"}
	})
	notReady := written("{apiVersion: cert-manager.io/v1, kind: ClusterIssuer, metadata: {name: company}, " +
		"status: {conditions: [{type: Ready, status: 'False', reason: ErrInitIssuer, message: sealed}]}}")
	empty := func(_ *testing.T, f *Facts) { f.Mutating[0].Webhooks[0].ClientConfig.CABundle = nil }
	released := func(_ *testing.T, f *Facts) { f.Injector.Spec.HolderIdentity = new("") }
	noLease := func(_ *testing.T, f *Facts) { f.Injector = nil }
	injectedFrom := func(annotation, value string) change {
		return func(_ *testing.T, f *Facts) { f.Validating[0].Annotations = map[string]string{annotation: value} }
	}
	return []row{
		{"a certificate of cert-manager", []change{byCertManager}, "certificates", OK, "cert-manager keeps"},
		{"a certificate of its own", []change{installedWith(3, bundle(t, 365*day))}, "certificates", "", ""},
		{"no cert-manager", []change{byCertManager, func(_ *testing.T, f *Facts) { f.Groups = nil }},
			"certificates", Problem, "CustomResourceDefinitions are not installed"},
		{"groups that are not in files", []change{byCertManager, func(_ *testing.T, f *Facts) { f.Groups, f.FromFiles = nil, true }},
			"certificates", OK, "cert-manager keeps"},
		{"certificates that may not be read", []change{byCertManager, unreadable(whatCertificates)},
			"unread", Warning, "cert-manager's Certificates"},
		{"nothing is known of certificates that may not be read", []change{byCertManager, unreadable(whatCertificates)}, "certificates", "", ""},
		{"no issuer", []change{byCertManager, func(_ *testing.T, f *Facts) { f.Issuers = nil }},
			"certificates", Problem, "Issuer gpuslice-webhook-authority, which Certificate gpuslice-webhook names, does not exist"},
		{"an issuer of another namespace", []change{byCertManager, func(_ *testing.T, f *Facts) { f.Issuers[0].Namespace = "a" }},
			"certificates", Problem, "Issuer gpuslice-webhook-root, which Certificate gpuslice-webhook-authority names, does not exist"},
		{"an issuer that nobody looked at",
			[]change{byCertManager, func(_ *testing.T, f *Facts) { f.Issuers[1].Status = certmanager.IssuerStatus{} }},
			"certificates", Problem, "Issuer gpuslice-webhook-authority is not ready: cert-manager has not reported"},
		{"no issuer of the cluster", []change{byCertManager, clusterIssuer}, "certificates", Problem, "ClusterIssuer company, which"},
		{"an issuer of the cluster that is not ready", []change{byCertManager, clusterIssuer, notReady},
			"certificates", Problem, "ClusterIssuer company is not ready: sealed (ErrInitIssuer)"},
		{"an issuer of others",
			[]change{byCertManager, certificate(serving, func(c *certmanager.Certificate) { c.Spec.IssuerRef.Group = "example.com" })},
			"certificates", OK, "cert-manager keeps"},
		{"a certificate that is not ready", []change{byCertManager, certificate(serving, failed)},
			"certificates", Problem, "Certificate gpuslice-webhook is not ready: Secret does not exist (DoesNotExist)"},
		{"an authority that is not ready", []change{byCertManager, certificate(authority, failed)},
			"certificates", Problem, "Certificate gpuslice-webhook-authority is not ready"},
		{"a late renewal", []change{byCertManager, certificate(serving, renewal(time.Hour))},
			"certificates", Warning, "the renewal of Certificate gpuslice-webhook is overdue"},
		{"a renewal that is due", []change{byCertManager, certificate(serving, renewal(time.Minute))}, "certificates", OK, "cert-manager keeps"},
		{"an expired certificate", []change{byCertManager, certificate(serving, func(c *certmanager.Certificate) {
			c.Status.NotAfter = new(metav1.NewTime(at.Add(-time.Minute)))
		})}, "certificates", Problem, "has expired"},
		{"a certificate in another Secret",
			[]change{byCertManager, certificate(serving, func(c *certmanager.Certificate) { c.Spec.SecretName = "tls" })},
			"certificates", Problem, "no Certificate writes Secret gpuslice-webhook-tls"},
		{"authorities that sign each other",
			[]change{byCertManager, func(_ *testing.T, f *Facts) { f.Issuers[1].Spec.CA.SecretName = "gpuslice-webhook-tls" }},
			"certificates", OK, "cert-manager keeps"},

		{"a CA injector", []change{byCertManager}, "ca-injector", OK, "runs"},
		{"a CA injector that was stopped", []change{byCertManager, released}, "ca-injector", Warning, "a new authority does not reach caBundle"},
		{"a CA injector that does not answer", []change{byCertManager, func(_ *testing.T, f *Facts) {
			f.Injector.Spec.RenewTime = new(metav1.NewMicroTime(at.Add(-time.Hour)))
		}}, "ca-injector", Warning, "does not run"},
		{"a CA injector that was stopped before it wrote", []change{byCertManager, released, empty},
			"ca-injector", Problem, "nothing writes caBundle"},
		{"no CA injector", []change{byCertManager, noLease, empty}, "ca-injector", Problem, "nothing writes caBundle"},
		{"a CA injector without election", []change{byCertManager, noLease}, "ca-injector", "", ""},
		{"a CA injector that may not be read", []change{byCertManager, noLease, empty, unreadable(whatInjector)}, "ca-injector", "", ""},
		{"an old Lease in a file", []change{byCertManager, released, func(_ *testing.T, f *Facts) { f.FromFiles = true }}, "ca-injector", "", ""},
		{"another Secret injected", []change{byCertManager, injectedFrom(certmanager.WantInjectFromSecretAnnotation, "a/b")},
			"ca-injector", Warning, "does not keep its authorities"},
		{"a Certificate injected", []change{byCertManager, injectedFrom(certmanager.WantInjectAnnotation, api.SystemNamespace+"/"+serving)},
			"ca-injector", Note, "before cert-manager 1.19"},
	}
}

// TestCauseFirst: an issuer that is missing stands before the certificates that wait for it.
func TestCauseFirst(t *testing.T) {
	t.Parallel()
	f := facts(t, byCertManager, certificate("gpuslice-webhook", failed), certificate("gpuslice-webhook-authority", failed),
		func(_ *testing.T, f *Facts) { f.Issuers = f.Issuers[1:] })
	var got []string
	for _, found := range checkCertificates(f) {
		got = append(got, strings.Fields(found.Summary)[0]+" "+strings.TrimSuffix(strings.Fields(found.Summary)[1], ","))
	}
	want := []string{"Issuer gpuslice-webhook-root", "Certificate gpuslice-webhook-authority", "Certificate gpuslice-webhook"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
