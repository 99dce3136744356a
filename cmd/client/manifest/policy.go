package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

// AcceptedPolicies ends messages about input without a policy.
const AcceptedPolicies = `accepted: documents with apiVersion: gpuslice.dev/v1, or ConfigMaps with the label gpuslice.dev/policy: "true" and the key policy.yaml`

// maxPadding bounds the empty lines that replace the text before a document in its file, so that the core counts lines
// as the file does.
const maxPadding = 5_000

// Policy is one policy as it was found in the input: bare, or within a ConfigMap.
type Policy struct {
	At       string // for messages: "policies.yaml: ConfigMap gpuslice-system/team-a"
	Name     string // by which decisions call it
	Place    config.Place
	Policy   *config.Policy // nil: it cannot be read
	Text     []byte         // the document
	TenantOf string         // the namespace whose own document it is; "": of a bare one that names none
	Problems []error
	Warnings []string
}

// PolicyReader finds policies among documents.
type PolicyReader struct {
	System  string // the namespace whose ConfigMaps govern
	Tenants bool   // bare documents are tenants' own
	named   bool   // the user named the file: a document without a kind is meant to be a policy
}

// Rest are the documents beside policies.
type Rest struct {
	Objects []Object
	Unread  []Error
}

// Read reads the policies in paths, and returns the documents beside them.
func (r PolicyReader) Read(input *Reader, paths []string) ([]Policy, Rest) {
	var found []Policy
	var rest Rest
	for _, path := range paths {
		for _, d := range input.Documents([]string{path}, MaxManifest) {
			r.named = d.At.File == path || path == StdinPath
			if r.isBare(d) {
				found = append(found, r.bare(d))
				continue
			}
			objects, unread := d.Objects()
			rest.Unread = append(rest.Unread, unread...)
			for _, o := range objects {
				if p, ok := r.ConfigMap(o); ok {
					found = append(found, p)
					continue
				}
				rest.Objects = append(rest.Objects, o)
			}
		}
	}
	return found, rest
}

// isBare reports whether a document is a policy as it is: policies have an apiVersion of ours, and need no kind.
func (r PolicyReader) isBare(d Document) bool {
	var h head
	if d.Raw == nil || json.Unmarshal(d.Raw, &h) != nil {
		return false
	}
	return strings.HasPrefix(h.APIVersion, api.Domain+"/") || r.named && h.Kind == ""
}

// bare reads a document that is a policy as it is.
func (r PolicyReader) bare(d Document) Policy {
	text := d.Text
	if d.first <= maxPadding {
		text = slices.Concat(bytes.Repeat([]byte("\n"), d.first-1), d.Text)
	}
	p := Policy{At: d.At.String(), Name: d.At.String(), Place: config.Place{Authority: true}, Text: d.Text}
	parse := config.Parse
	if r.Tenants {
		p.Place, parse = config.Place{Tenant: true}, config.ParseTenant
	}
	policy, problems := parse(p.Name, text)
	p.Policy = policy
	for _, problem := range problems {
		p.Problems = append(p.Problems, problem)
	}
	p.lint()
	return p
}

// ConfigMap reads a policy ConfigMap; false where o is none.
func (r PolicyReader) ConfigMap(o Object) (Policy, bool) {
	if o.Kind != "ConfigMap" || o.APIVersion != "v1" {
		return Policy{}, false
	}
	var m corev1.ConfigMap
	err := json.Unmarshal(o.Raw, &m)
	if m.Namespace == "" {
		m.Namespace, o.Namespace = r.System, r.System
	}
	place, why := config.PlaceOf(&m, r.System)
	if place == (config.Place{}) && why == "" {
		return Policy{}, false
	}
	p := Policy{At: o.String(), Name: m.Namespace + "/" + m.Name, Place: place, Text: []byte(m.Data[api.PolicyKey])}
	switch {
	case err != nil:
		p.Problems = []error{fmt.Errorf("it is no ConfigMap: %w", err)}
	case place.Tenant:
		p.TenantOf = m.Namespace
		p.Policy, p.Problems = config.ParseConfigMap(&m, config.ParseTenant)
	default:
		p.Policy, p.Problems = config.ParseConfigMap(&m, config.Parse)
	}
	if why != "" {
		p.Warnings = append(p.Warnings, why)
		if m.Namespace == r.System {
			p.Place = config.Place{Authority: true} // a label is quickly added: its decision is worth seeing
		}
	}
	p.lint()
	return p, true
}

// lint warns about valid settings that are probably mistakes. A tenant's document sets only a part, which proves nothing.
func (p *Policy) lint() {
	if p.Policy != nil && !p.Place.Tenant {
		p.Warnings = append(p.Warnings, policies.Lint(p.Policy, nil)...)
	}
}

// Governing are the policies that govern by themselves, without tenants' policies.
func Governing(documents []Policy) []*config.Policy {
	var all []*config.Policy
	for _, d := range documents {
		if d.Policy != nil && d.Place.Authority {
			all = append(all, d.Policy)
		}
	}
	return all
}
