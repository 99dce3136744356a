package strategies

import (
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Replace puts a stub in the place of a strategy until restore is called: for tests, which prove by it that nothing but
// a strategy's own file knows its name. It panics where there is no such strategy.
func Replace(name api.StrategyName, stub func(Strategy) Strategy) (restore func()) {
	before := strategies
	strategies = slices.Clone(strategies)
	i := slices.IndexFunc(strategies, func(s Strategy) bool { return s.Name == name })
	strategies[i] = stub(strategies[i])
	return func() { strategies = before }
}
