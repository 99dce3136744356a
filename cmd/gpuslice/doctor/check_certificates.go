package doctor

import (
	"cmp"
	"slices"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// overdue is how long after its time a renewal is reported, and a Lease as given up: clocks differ.
const overdue = 5 * time.Minute

// checkCertificates looks at cert-manager's objects where it writes caBundle.
func checkCertificates(f *Facts) []Finding {
	injected := f.injected()
	if len(injected) == 0 {
		return nil
	}
	if !f.FromFiles && !f.unread(whatGroups) && !slices.Contains(f.Groups, certmanager.SchemeGroupVersion.String()) {
		missing := newFinding(Problem, "cert-manager's CustomResourceDefinitions are not installed: nothing renews the webhook's certificate")
		for _, i := range injected {
			missing = missing.With(i.configuration, "metadata.annotations", cmp.Or(i.secret, i.certificate))
		}
		return []Finding{missing.WithRemedy("install cert-manager with them and its CA injector, or let the webhook keep its own "+
			"certificate: %s --set certificates.source=self", f.upgrade())}
	}
	if f.unread(whatCertificates) {
		return nil
	}
	return checkChain(f)
}

// checkChain judges each Certificate and issuer on the way from the mounted Secret, the last first: it is the cause of what is
// wrong with the others.
func checkChain(f *Facts) (all []Finding) {
	mounted := mountedSecret(f.Deployment)
	ok := newFinding(OK, "cert-manager keeps the webhook's certificate")
	seen := map[string]bool{}
	for secret := mounted; secret != "" && !seen[secret]; {
		seen[secret] = true
		c := f.certificateOf(secret)
		if c == nil {
			break // somebody's own authority
		}
		ok = ok.With(object("certificate", c.Namespace, c.Name), "status.renewalTime", moment(metaTime(c.Status.RenewalTime)))
		issuer, known := f.issuerOf(c)
		all = append(slices.Concat(judgeIssuer(f, c, issuer, known), judgeCertificate(f, c)), all...)
		secret = ""
		// The Secret of a ClusterIssuer is in cert-manager's own namespace, of which nothing is known.
		if issuer != nil && issuer.GetNamespace() != "" && issuer.GetSpec().CA != nil {
			secret = issuer.GetSpec().CA.SecretName
		}
	}
	switch {
	case mounted != "" && f.certificateOf(mounted) == nil:
		return []Finding{unwritten(f, mounted)}
	case len(all) == 0 && mounted != "":
		return []Finding{ok}
	}
	return all
}

// unwritten reports that no Certificate writes the mounted Secret, with the Secrets that are written.
func unwritten(f *Facts, mounted string) Finding {
	none := newFinding(Problem, "no Certificate writes Secret %s, which the webhook mounts", mounted).
		With(object("deployment", f.System, f.Deployment.Name), "spec.template.spec.volumes", mounted).
		WithRemedy("set spec.secretName of the webhook's Certificate in namespace %s to %s; if there is none, restore it: %s",
			f.System, mounted, f.reinstall())
	for _, c := range f.Certificates {
		if c.Namespace == f.System {
			none = none.With(object("certificate", c.Namespace, c.Name), "spec.secretName", c.Spec.SecretName)
		}
	}
	return none
}

// judgeCertificate reports a Certificate that is not ready, and a renewal that is late.
func judgeCertificate(f *Facts, c *certmanager.Certificate) []Finding {
	var ready, issuing certmanager.CertificateCondition
	for _, condition := range c.Status.Conditions {
		switch condition.Type {
		case certmanager.CertificateConditionReady:
			ready = condition
		case certmanager.CertificateConditionIssuing:
			issuing = condition
		}
	}
	var found Finding
	renewal, end := metaTime(c.Status.RenewalTime), metaTime(c.Status.NotAfter)
	switch {
	case ready.Status != cmmeta.ConditionTrue:
		found = newFinding(Problem, "Certificate %s is not ready: %s", c.Name, reason(ready.Reason, ready.Message))
	case !end.IsZero() && f.Now.After(end):
		found = newFinding(Problem, "Certificate %s has expired, and cert-manager has not renewed it", c.Name)
	case !renewal.IsZero() && f.Now.Sub(renewal) > overdue:
		found = newFinding(Warning, "the renewal of Certificate %s is overdue", c.Name)
	default:
		return nil
	}
	name := object("certificate", c.Namespace, c.Name)
	found = found.With(name, "status.conditions[Ready]", cmp.Or(string(ready.Status), "missing"))
	if issuing.Reason != "" {
		found = found.With(name, "status.conditions[Issuing]", reason(issuing.Reason, issuing.Message))
	}
	found = found.With(name, "status.renewalTime", moment(renewal)).With(name, "status.notAfter", moment(end))
	return []Finding{found.WithRemedy("kubectl -n %s describe certificates,certificaterequests, and the log of cert-manager", c.Namespace)}
}

// judgeIssuer reports an issuer that is missing or not ready. Those of other groups are not known here.
func judgeIssuer(f *Facts, c *certmanager.Certificate, issuer certmanager.GenericIssuer, known bool) []Finding {
	ref := c.Spec.IssuerRef
	kind := cmp.Or(ref.Kind, certmanager.IssuerKind)
	switch {
	case !known:
		return nil
	case issuer == nil:
		return []Finding{newFinding(Problem, "%s %s, which Certificate %s names, does not exist", kind, ref.Name, c.Name).
			With(object("certificate", c.Namespace, c.Name), "spec.issuerRef.name", ref.Name).
			WithRemedy("create it, or correct issuerRef; the issuers of gpuslice are restored by: %s", f.reinstall())}
	}
	var ready certmanager.IssuerCondition
	for _, condition := range issuer.GetStatus().Conditions {
		if condition.Type == certmanager.IssuerConditionReady {
			ready = condition
		}
	}
	if ready.Status == cmmeta.ConditionTrue {
		return nil
	}
	name := object("issuer", issuer.GetNamespace(), issuer.GetName())
	if kind == certmanager.ClusterIssuerKind {
		name = object("clusterissuer", "", issuer.GetName())
	}
	return []Finding{newFinding(Problem, "%s %s is not ready: %s", kind, ref.Name, reason(ready.Reason, ready.Message)).
		With(name, "status.conditions[Ready]", cmp.Or(string(ready.Status), "missing")).
		WithRemedy("correct what it names, such as its Secret; kubectl -n %s describe issuers,clusterissuers has more", c.Namespace)}
}

// moment is a time as objects have it.
func moment(at time.Time) string {
	if at.IsZero() {
		return "not set"
	}
	return at.UTC().Format(time.RFC3339)
}

// metaTime is zero where a time is not set.
func metaTime(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// reason is what a condition says.
func reason(word, message string) string {
	if word == "" && message == "" {
		return "cert-manager has not reported on it"
	}
	return message + " (" + word + ")"
}
