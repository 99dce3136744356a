package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

// Bounds on policies, beside those of package policies. Only cluster admins write them, so these guard against
// accidents.
const (
	MaxPolicies = 512
	maxProblems = 5 // of one document that a message lists
)

// document is one policy ConfigMap as it was understood.
type document struct {
	name    string         // "namespace/configmap"
	object  string         // the ConfigMap's name
	version string         // the ConfigMap's resourceVersion
	text    string         // its content
	policy  *config.Policy // in force: this version, or the last good one
	standIn *config.Policy // claims the namespaces of a document that has no policy in force; nil: they cannot be read
	err     error          // why this version cannot be used
}

// readDocuments understands the policy ConfigMaps, in the order of their names. good are the last good versions.
func readDocuments(maps []*corev1.ConfigMap, good map[string]GoodPolicy) []document {
	maps = slices.SortedFunc(slices.Values(maps), func(a, b *corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	documents := make([]document, 0, len(maps))
	for i, m := range maps {
		documents = append(documents, readDocument(m, i < MaxPolicies, good[m.Name]))
	}
	return documents
}

// readDocument understands one ConfigMap.
func readDocument(m *corev1.ConfigMap, counted bool, good GoodPolicy) document {
	d := document{name: m.Namespace + "/" + m.Name, object: m.Name, version: m.ResourceVersion}
	if text := m.Data[api.PolicyKey]; len(text) <= config.MaxDocument {
		d.text = text
	}
	err := fmt.Errorf("there are more than %d policies", MaxPolicies)
	if counted {
		d.policy, err = parse(m)
	}
	if err == nil {
		return d
	}
	d.err = fmt.Errorf("policy %s cannot be used: %w", d.name, err) // whoever meets it does so through a denied pod
	if good.Text != "" && counted {
		d.policy, _ = config.Parse(d.name, []byte(good.Text))
	}
	if d.policy == nil {
		d.standIn = standIn(d.name, d.text)
	}
	return d
}

// parse reads the document of a policy ConfigMap and joins its first problems to one error.
func parse(m *corev1.ConfigMap) (*config.Policy, error) {
	policy, problems := config.ParseConfigMap(m, config.Parse)
	if rest := len(problems) - maxProblems; rest > 0 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Errorf("and %d more", rest))
	}
	return policy, errors.Join(problems...)
}

// standIn reads of a broken document only whom it governs. It returns nil where that is absent or broken too: a
// misspelt key must not make a team's policy a second default.
func standIn(name, text string) *config.Policy {
	var part struct {
		Namespaces *config.NamespaceMatch `json:"namespaces"`
	}
	if yaml.Unmarshal([]byte(text), &part) != nil || part.Namespaces == nil {
		return nil
	}
	_, err := metav1.LabelSelectorAsSelector(part.Namespaces.Selector)
	if err != nil || len(part.Namespaces.Names) == 0 && part.Namespaces.Selector == nil {
		return nil
	}
	return &config.Policy{Name: name, Namespaces: part.Namespaces}
}
