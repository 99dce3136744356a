package policyinit

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/config"
)

// TestDocument: the first policy is valid, raises no warning and governs what it was asked for; so is it with its comments taken away.
func TestDocument(t *testing.T) {
	for _, namespace := range []string{"", "team-a", "default", "gpuslice-state", "123", "1e3", "0x1f", "0o7",
		"2026-11-22", "1-2", "on", "off", "y", "n", "null", "true"} {
		var m corev1.ConfigMap
		if err := yaml.UnmarshalStrict([]byte(document(namespace, "gpuslice-system")), &m); err != nil {
			t.Fatal(err)
		}
		if place, why := config.PlaceOf(&m, "gpuslice-system"); !place.Authority || why != "" {
			t.Errorf("%q: %+v, %s", namespace, place, why)
		}
		p, problems := config.ParseConfigMap(&m, config.Parse)
		if len(problems) > 0 {
			t.Fatalf("%q: %v", namespace, problems)
		}
		if warnings := policies.Lint(p, nil); len(warnings) > 0 {
			t.Errorf("%q: %v", namespace, warnings)
		}
		if namespace == "" && p.Namespaces != nil ||
			namespace != "" && (p.Namespaces == nil || !slices.Equal(p.Namespaces.Names, []string{namespace})) {
			t.Errorf("%q: it governs %+v", namespace, p.Namespaces)
		}
		if (m.Name == "default") != (namespace == "") || m.Name == "gpuslice-state" {
			t.Errorf("%q: it replaces ConfigMap %s", namespace, m.Name)
		}
	}
}

func TestNamesOfNoNamespace(t *testing.T) {
	for _, name := range []string{"Team", "a.b", "a b", "a\nb", "-a"} {
		if check(name, "gpuslice-system") == nil || check("team-a", name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}
