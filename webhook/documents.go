package webhook

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
)

// Bounds on policies. Only cluster admins write them, so these guard against accidents; the first also keeps all last
// good versions within one ConfigMap.
const (
	maxPolicy   = 64 << 10 // bytes of one document
	maxPolicies = 512
	maxShown    = 5 // problems of one document that a message lists
)

// document is one policy ConfigMap as it was understood.
type document struct {
	name    string           // "namespace/configmap"
	object  string           // the ConfigMap's name
	version string           // the ConfigMap's resourceVersion
	text    string           // what it holds
	policy  *policies.Policy // in force: this version, or the last good one
	standIn *policies.Policy // claims the namespaces of a document that has no policy in force; nil: they cannot be read
	err     error            // why this version cannot be used
}

// readDocuments understands the policy ConfigMaps, in the order of their names. good are the last good versions.
func readDocuments(maps []*corev1.ConfigMap, good map[string]GoodPolicy) []document {
	maps = slices.SortedFunc(slices.Values(maps), func(a, b *corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	documents := make([]document, 0, len(maps))
	for i, m := range maps {
		documents = append(documents, readDocument(m, i < maxPolicies, good[m.Name]))
	}
	return documents
}

// readDocument understands one ConfigMap.
func readDocument(m *corev1.ConfigMap, counted bool, good GoodPolicy) document {
	d := document{name: m.Namespace + "/" + m.Name, object: m.Name, version: m.ResourceVersion}
	var err error
	if d.text, err = documentText(m); err == nil && !counted {
		err = fmt.Errorf("there are more than %d policies", maxPolicies)
	}
	if err == nil {
		d.policy, err = parse(d.name, d.text)
	}
	if err == nil {
		return d
	}
	d.err = explain(d.name, err)
	if good.Text != "" && counted {
		d.policy, _ = parse(d.name, good.Text)
	}
	if d.policy == nil {
		d.standIn = standIn(d.name, d.text)
	}
	return d
}

// documentText returns the one document of a policy ConfigMap.
func documentText(m *corev1.ConfigMap) (string, error) {
	text, ok := m.Data[policies.PolicyKey]
	switch {
	case !ok:
		return "", fmt.Errorf("the ConfigMap has no key %s", policies.PolicyKey)
	case len(m.Data)+len(m.BinaryData) > 1:
		keys := slices.Sorted(maps.Keys(m.Data))
		return text, fmt.Errorf("the ConfigMap has keys beside %s: %s", policies.PolicyKey, clean(strings.Join(keys, ", "), maxWarning))
	case len(text) > maxPolicy:
		return "", fmt.Errorf("the document has %d bytes, more than %d", len(text), maxPolicy)
	}
	return text, nil
}

// parse reads a document and joins its first problems to one error.
func parse(name, text string) (*policies.Policy, error) {
	policy, problems := policies.ParsePolicy(name, []byte(text))
	if len(problems) == 0 {
		if policy == nil {
			return nil, errors.New("the document is empty")
		}
		return policy, nil
	}
	var errs []error
	for _, p := range problems[:min(len(problems), maxShown)] {
		errs = append(errs, p)
	}
	if rest := len(problems) - maxShown; rest > 0 {
		errs = append(errs, fmt.Errorf("and %d more", rest))
	}
	return nil, errors.Join(errs...)
}

// standIn reads of a broken document only whom it governs. It returns nil where that is absent or broken too: a
// misspelt key must not make a team's policy a second default.
func standIn(name, text string) *policies.Policy {
	var part struct {
		Namespaces *policies.NamespaceMatch `json:"namespaces"`
	}
	if yaml.Unmarshal([]byte(text), &part) != nil || part.Namespaces == nil {
		return nil
	}
	_, err := metav1.LabelSelectorAsSelector(part.Namespaces.Selector)
	if err != nil || len(part.Namespaces.Names) == 0 && part.Namespaces.Selector == nil {
		return nil
	}
	return &policies.Policy{Name: name, Namespaces: part.Namespaces}
}
