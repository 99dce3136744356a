package main

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

// maxPadding bounds the empty lines that stand for what precedes a document in its file, so that the core counts lines
// as the file does.
const maxPadding = 5_000

// policyDocument is one policy as it was found in the input: bare, or within a ConfigMap.
type policyDocument struct {
	at       string // for messages: "policies.yaml: ConfigMap gpuslice-system/team-a"
	name     string // by which decisions call it
	text     []byte
	place    config.Place
	policy   *config.Policy
	tenantOf string // the namespace whose own document it is; "": of a bare one that is not said
	problems []error
	warnings []string
}

// policyReader finds policies among documents.
type policyReader struct {
	system  string // the namespace whose ConfigMaps govern
	named   bool   // the user named the file: a document without a kind is meant to be a policy
	tenants bool   // bare documents are tenants' own
}

// barePolicy says that a document is a policy as it stands: policies have an apiVersion of ours, and need no kind.
func (r policyReader) barePolicy(d document) bool {
	var h head
	if d.raw == nil || json.Unmarshal(d.raw, &h) != nil {
		return false
	}
	return strings.HasPrefix(h.APIVersion, api.Domain+"/") || r.named && h.Kind == ""
}

// bare reads a document that is a policy as it stands.
func (r policyReader) bare(d document) policyDocument {
	p := policyDocument{at: d.at.String(), name: d.at.String(), text: d.text}
	if d.first <= maxPadding {
		p.text = slices.Concat(bytes.Repeat([]byte("\n"), d.first-1), d.text)
	}
	p.place = config.PlaceAuthority
	parse := config.Parse
	if r.tenants {
		p.place, parse = config.PlaceTenant, config.ParseTenant
	}
	policy, problems := parse(p.name, p.text)
	p.policy = policy
	for _, problem := range problems {
		p.problems = append(p.problems, problem)
	}
	p.doubt()
	return p
}

// configMap reads a policy ConfigMap; false where o is none.
func (r policyReader) configMap(o object) (policyDocument, bool) {
	if o.kind != "ConfigMap" || o.apiVersion != "v1" {
		return policyDocument{}, false
	}
	var m corev1.ConfigMap
	err := json.Unmarshal(o.raw, &m)
	if m.Namespace == "" {
		m.Namespace, o.namespace = r.system, r.system
	}
	place, why := config.PlaceOf(&m, r.system)
	if place == config.PlaceNone && why == "" {
		return policyDocument{}, false
	}
	p := policyDocument{at: o.String(), name: m.Namespace + "/" + m.Name, place: place}
	switch {
	case err != nil:
		p.problems = []error{fmt.Errorf("it is no ConfigMap: %w", err)}
	case place == config.PlaceTenant:
		p.tenantOf = m.Namespace
		p.policy, p.problems = config.ParseConfigMap(&m, config.ParseTenant)
	default:
		p.policy, p.problems = config.ParseConfigMap(&m, config.Parse)
	}
	if why != "" {
		p.warnings = append(p.warnings, why)
		if m.Namespace == r.system {
			p.place = config.PlaceAuthority // a label is quickly added: what it would decide is worth to be seen
		}
	}
	p.doubt()
	return p, true
}

// doubt warns of what is legal and hardly meant. A tenant's document says only a part, which tells nothing.
func (p *policyDocument) doubt() {
	if p.policy != nil && p.place != config.PlaceTenant {
		p.warnings = append(p.warnings, policies.Lint(p.policy, nil)...)
	}
}

// governing are the policies that hold by themselves, without those of tenants.
func governing(documents []policyDocument) []*config.Policy {
	var all []*config.Policy
	for _, d := range documents {
		if d.policy != nil && d.place == config.PlaceAuthority {
			all = append(all, d.policy)
		}
	}
	return all
}
