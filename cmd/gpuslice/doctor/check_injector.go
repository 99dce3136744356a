package doctor

import (
	"cmp"
	"slices"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// checkInjector looks at what cert-manager's CA injector writes into our configurations, and whether it runs.
func checkInjector(f *Facts) []Finding {
	injected := f.injected()
	if len(injected) == 0 {
		return nil
	}
	all := checkInjections(f, injected)
	if f.FromFiles || f.unread(whatInjector) {
		return all // a Lease in a file is always old
	}
	mutating, validating := entries(f)
	empty := slices.ContainsFunc(append(mutating, validating...), func(e entry) bool { return len(e.bundle) == 0 })
	switch l := f.Injector; {
	case l == nil && empty:
		all = append(all, stoppedInjector(empty).With("lease/"+injectorLease, "", "there is none"))
	case l == nil:
		// Without election there is no Lease either.
	case givenUp(l, f.Now):
		all = append(all, stoppedInjector(empty).With(object("lease", l.Namespace, l.Name), "spec.renewTime", moment(renewedAt(l))))
	case len(all) == 0 && !empty:
		all = append(all, newFinding(OK, "cert-manager's CA injector runs").
			With(object("lease", l.Namespace, l.Name), "spec.renewTime", moment(renewedAt(l))))
	}
	return all
}

func stoppedInjector(empty bool) Finding {
	level, effect := Warning, "a new authority does not reach caBundle"
	if empty {
		level, effect = Problem, "nothing writes caBundle"
	}
	return newFinding(level, "cert-manager's CA injector does not run: %s", effect).
		WithRemedy("kubectl get deployments -A -l app.kubernetes.io/component=cainjector, and start it; if there is none, install it")
}

// checkInjections compares what is injected with what the webhook writes.
func checkInjections(f *Facts, injected []injection) (all []Finding) {
	own := f.System + "/" + cmp.Or(webhookFlag(f.Deployment, "certs-secret"), "gpuslice-authority")
	for _, i := range injected {
		if i.secret != "" && i.secret != own {
			all = append(all, newFinding(Warning, "caBundle is injected from a Secret in which the webhook does not keep its authorities").
				With(i.configuration, "metadata.annotations["+certmanager.WantInjectFromSecretAnnotation+"]", i.secret).
				WithRemedy("set the annotation to %s", own))
		}
		if i.certificate != "" {
			all = append(all, newFinding(Note, "caBundle is injected from a Certificate: before cert-manager 1.19, its replacement can fail calls").
				With(i.configuration, "metadata.annotations["+certmanager.WantInjectAnnotation+"]", i.certificate).
				WithRemedy("replace it by the annotation %s: %s", certmanager.WantInjectFromSecretAnnotation, own))
		}
	}
	return all
}

// givenUp reports whether nobody holds a Lease: its holder has released it, or has not renewed it.
func givenUp(l *coordinationv1.Lease, now time.Time) bool {
	return l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || now.Sub(renewedAt(l)) > overdue
}
