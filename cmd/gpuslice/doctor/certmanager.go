package doctor

import (
	"cmp"
	"path"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
)

// injectorLease is what the replicas of cert-manager's CA injector elect their leader by.
const injectorLease = "cert-manager-cainjector-leader-election"

// renewedAt is zero where nobody has renewed a Lease.
func renewedAt(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

// injected are our configurations whose caBundle cert-manager's CA injector writes.
func (f *Facts) injected() (all []injection) {
	add := func(kind, name string, annotations map[string]string) {
		i := injection{
			configuration: object(kind, "", name),
			secret:        annotations[certmanager.WantInjectFromSecretAnnotation],
			certificate:   annotations[certmanager.WantInjectAnnotation],
		}
		if i.secret != "" || i.certificate != "" {
			all = append(all, i)
		}
	}
	for _, m := range ours(f.Mutating) {
		add("mutatingwebhookconfiguration", m.Name, m.Annotations)
	}
	for _, v := range ours(f.Validating) {
		add("validatingwebhookconfiguration", v.Name, v.Annotations)
	}
	return all
}

// injection is what a configuration is injected from, NAMESPACE/NAME.
type injection struct {
	configuration       string
	secret, certificate string
}

// certificateOf is the Certificate of the installation that writes a Secret; nil: there is none.
func (f *Facts) certificateOf(secret string) *certmanager.Certificate {
	for _, c := range f.Certificates {
		if c.Namespace == f.System && c.Spec.SecretName == secret {
			return c
		}
	}
	return nil
}

// issuerOf is the issuer that a Certificate names, nil where it does not exist; known is false for one of another group.
func (f *Facts) issuerOf(c *certmanager.Certificate) (issuer certmanager.GenericIssuer, known bool) {
	ref := c.Spec.IssuerRef
	if group := certmanager.SchemeGroupVersion.Group; cmp.Or(ref.Group, group) != group {
		return nil, false
	}
	if ref.Kind == certmanager.ClusterIssuerKind {
		for _, i := range f.ClusterIssuers {
			if i.Name == ref.Name {
				return i, true
			}
		}
		return nil, true
	}
	for _, i := range f.Issuers {
		if i.Namespace == c.Namespace && i.Name == ref.Name {
			return i, true
		}
	}
	return nil, true
}

// mountedSecret is the Secret in which the webhook finds its certificate; "": it is not known.
func mountedSecret(d *appsv1.Deployment) string {
	file := webhookFlag(d, "certs-file")
	if file == "" {
		return ""
	}
	pod := d.Spec.Template.Spec
	for _, c := range pod.Containers {
		for _, m := range c.VolumeMounts {
			for _, v := range pod.Volumes {
				if v.Name == m.Name && v.Secret != nil && path.Clean(m.MountPath) == path.Dir(file) {
					return v.Secret.SecretName
				}
			}
		}
	}
	return ""
}

// webhookFlag is the value of a flag of the webhook.
func webhookFlag(d *appsv1.Deployment, flag string) string {
	if d == nil {
		return ""
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		if value, ok := installed.Argument(c, flag); ok {
			return value
		}
	}
	return ""
}
