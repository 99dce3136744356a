package policies

import (
	"slices"
	"testing"
)

// ReplaceStrategy puts a stub in the place of a strategy until the test ends.
func ReplaceStrategy(t *testing.T, name StrategyName, stub func(Strategy) Strategy) {
	t.Helper()
	before := strategies
	t.Cleanup(func() { strategies = before })
	strategies = slices.Clone(strategies)
	i := slices.IndexFunc(strategies, func(s Strategy) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no strategy %s to replace", name)
	}
	strategies[i] = stub(strategies[i])
}
