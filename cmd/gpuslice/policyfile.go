package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
)

// maxPadding bounds the empty lines that stand for what precedes a document in its file, so that the core counts lines
// as the file does.
const maxPadding = 5_000

// policyDocument is one policy as it was found in the input: bare, or within a ConfigMap.
type policyDocument struct {
	at       string // for messages: "policies.yaml: ConfigMap gpuslice-system/team-a"
	name     string // by which decisions call it
	text     []byte
	tenant   bool // it lies in a namespace of tenants, who govern nothing
	policy   *policies.Policy
	problems []error
	warnings []string
}

// policyReader finds policies among documents.
type policyReader struct {
	system string // the namespace whose ConfigMaps govern
	named  bool   // the user named the file: a document without a kind is meant to be a policy
}

// barePolicy says that a document is a policy as it stands: policies have an apiVersion of ours, and need no kind.
func (r policyReader) barePolicy(d document) bool {
	var h head
	if d.raw == nil || json.Unmarshal(d.raw, &h) != nil {
		return false
	}
	return strings.HasPrefix(h.APIVersion, policies.Domain+"/") || r.named && h.Kind == ""
}

// bare reads a document that is a policy as it stands.
func (r policyReader) bare(d document) policyDocument {
	p := policyDocument{at: d.at.String(), name: d.at.String(), text: d.text}
	if d.first <= maxPadding {
		p.text = slices.Concat(bytes.Repeat([]byte("\n"), d.first-1), d.text)
	}
	p.parse("")
	return p
}

// configMap reads a policy ConfigMap; false where o is none.
func (r policyReader) configMap(o object) (policyDocument, bool) {
	if o.kind != "ConfigMap" || o.apiVersion != "v1" {
		return policyDocument{}, false
	}
	if o.namespace == "" {
		o.namespace = r.system
	}
	var m corev1.ConfigMap
	err := json.Unmarshal(o.raw, &m)
	text, holds := m.Data[policies.PolicyKey]
	labelled := o.labels[policies.LabelPolicy] == "true"
	if !labelled && !holds {
		return policyDocument{}, false
	}
	p := policyDocument{at: o.String(), name: o.namespace + "/" + o.name, text: []byte(text)}
	p.tenant = o.namespace != r.system
	switch {
	case err != nil:
		p.problems = append(p.problems, fmt.Errorf("it is no ConfigMap: %w", err))
	case !holds:
		p.problems = append(p.problems, fmt.Errorf("data: the key %s is missing", policies.PolicyKey))
	case len(m.Data)+len(m.BinaryData) > 1:
		p.problems = append(p.problems, fmt.Errorf("data: there are keys beside %s, and nothing reads them", policies.PolicyKey))
	}
	p.placement(r.system, o, labelled)
	if holds {
		p.parse("data[" + policies.PolicyKey + "]: ")
	}
	return p, true
}

// placement warns of ConfigMaps that nobody will read where they are.
func (p *policyDocument) placement(system string, o object, labelled bool) {
	if !labelled {
		p.warnings = append(p.warnings, fmt.Sprintf(`the label %s: "true" is missing: the webhook does not see it`, policies.LabelPolicy))
	}
	if p.tenant {
		p.warnings = append(p.warnings, fmt.Sprintf("it lies in namespace %s, and policies govern from namespace %s: nothing is decided by it",
			o.namespace, system))
	}
}

// parse asks the core; path is where the document stands in its object.
func (p *policyDocument) parse(path string) {
	policy, problems := policies.ParsePolicy(p.name, p.text)
	for _, problem := range problems {
		p.problems = append(p.problems, fmt.Errorf("%s%w", path, problem))
	}
	if policy == nil && len(p.problems) == 0 {
		p.problems = append(p.problems, errors.New("the document is empty"))
	}
	p.policy = policy
}

// governing are the policies that hold by themselves, without those of tenants.
func governing(documents []policyDocument) []*policies.Policy {
	var all []*policies.Policy
	for _, d := range documents {
		if d.policy != nil && !d.tenant {
			all = append(all, d.policy)
		}
	}
	return all
}
