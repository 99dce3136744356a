package policies_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// poolHash ends the name of a pool, and follows from its strategy's name among others.
var poolHash = regexp.MustCompile(`-[0-9a-f]{8}\b`)

// TestStubStrategy puts a strategy of another name in the place of one: everything comes out as before under the new
// name, since nothing but a strategy's own file knows what it is called. It is not parallel: the list of strategies is
// the package's.
func TestStubStrategy(t *testing.T) {
	const name, stub = "time-slicing", "stub-slicing"
	if *update {
		t.Skip("the scenarios are written under the strategies that there are")
	}
	var all []scenarios.Scenario
	for _, s := range allScenarios(t) {
		all = append(all, renamed(s, func(text string) string { return strings.ReplaceAll(text, name, stub) }))
	}
	otherScenarios = all
	t.Cleanup(func() { otherScenarios = nil })
	t.Cleanup(strategies.Replace(name, func(s strategies.Strategy) strategies.Strategy {
		s.Name, s.Labels = stub, maps.Clone(s.Labels)
		s.Labels[strategies.LabelsDiscovery] = stub
		return s
	}))
	t.Run("every scenario comes out as it says", func(t *testing.T) {
		for _, s := range allScenarios(t) {
			got := outcome(t, s)
			for _, texts := range []map[string]string{s.Want, got} {
				for section := range texts {
					texts[section] = poolHash.ReplaceAllString(texts[section], "")
				}
			}
			if diff := cmp.Diff(s.Want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", s.Name, diff)
			}
		}
	})
	t.Run("every strategy has a scenario", TestScenariosOfKinds)
	t.Run("every tamper rule has a scenario", TestScenariosOfTampering)
	t.Run("every mount has its volume", TestMountVolumes)
}

// renamed is the scenario with every text of it changed.
func renamed(s scenarios.Scenario, rename func(string) string) scenarios.Scenario {
	for _, text := range []*[]byte{&s.Policy, &s.Tenant, &s.Pod, &s.Old} {
		if *text != nil {
			*text = []byte(rename(string(*text)))
		}
	}
	nodes := make([]*corev1.Node, len(s.Nodes))
	for i, node := range s.Nodes {
		nodes[i] = node.DeepCopy()
		for key, value := range node.Labels {
			nodes[i].Labels[key] = rename(value)
		}
	}
	s.Nodes, s.Want = nodes, maps.Clone(s.Want)
	for section, text := range s.Want {
		s.Want[section] = rename(text)
	}
	return s
}
