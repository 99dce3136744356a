package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"time"
)

// soon is how long before its end an authority that nobody renewed is reported. Ours lives for years and is renewed
// long before; cert-manager renews at two thirds.
const soon = 14 * 24 * time.Hour

// checkAuthority looks at the certificates by which the API server trusts the webhook.
func checkAuthority(f *Facts) []Finding {
	mutating, validating := entries(f)
	var all []Finding
	seen := map[string]bool{}
	for _, e := range append(mutating, validating...) {
		if len(e.bundle) == 0 || seen[e.configuration+string(e.bundle)] {
			continue
		}
		seen[e.configuration+string(e.bundle)] = true
		all = append(all, authority(e, f.Now))
	}
	return all
}

// authority judges a bundle by the certificate in it that lives longest: while one is replaced, both are there.
func authority(e entry, now time.Time) Finding {
	var last time.Time
	for rest := e.bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.NotAfter.After(last) {
			last = c.NotAfter
		}
	}
	field, until := "webhooks["+e.name+"].clientConfig.caBundle", last.UTC().Format(time.DateOnly)
	switch {
	case last.IsZero():
		return newFinding(Problem, "the authority of the webhook is no certificate").With(e.configuration, field, "no PEM certificate in it")
	case now.After(last):
		return newFinding(Problem, "the authority of the webhook has expired: the API server trusts no replica").
			With(e.configuration, field, "until "+until).
			WithRemedy(
				"kubectl -n gpuslice-system delete secret gpuslice-authority && kubectl -n gpuslice-system rollout restart deployment gpuslice-webhook")
	case now.Add(soon).After(last):
		return newFinding(Warning, "the authority of the webhook expires within %d days, and nothing has renewed it", int(soon.Hours()/24)).
			With(e.configuration, field, "until "+until).
			WithRemedy(
				"kubectl -n gpuslice-system logs deployment/gpuslice-webhook; with cert-manager, see the checks certificates and ca-injector")
	}
	return newFinding(OK, "the webhook's authority is good until %s", until).With(e.configuration, field, "until "+until)
}
