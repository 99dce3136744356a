package strategies

import (
	"cmp"
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
)

// strategies are all there are.
var strategies = []Strategy{timeSlicing(), mps(), mig(), exclusive(), claim()}

// All lists the strategies. Policy documents, plans and scenarios take their names from here.
func All() []Strategy { return slices.Clone(strategies) }

// Named returns the strategy of that name; the zero Strategy where there is none.
func Named(name api.StrategyName) *Strategy {
	for i := range strategies {
		if strategies[i].Name == name {
			return &strategies[i]
		}
	}
	return &Strategy{}
}

// Labeled returns the strategy that node labels have a word for.
func Labeled(source LabelSource, word string) *Strategy {
	return With(func(s *Strategy) bool { return word != "" && s.Labels[source] == word })
}

// OfUnit returns the first strategy whose resource has such units.
func OfUnit(unit Unit) *Strategy {
	return With(func(s *Strategy) bool { return s.Unit == unit })
}

func With(matches func(*Strategy) bool) *Strategy {
	for i := range strategies {
		if matches(&strategies[i]) {
			return &strategies[i]
		}
	}
	return &Strategy{}
}

// Names are the names of all strategies.
func Names() []api.StrategyName { return NamesWith(func(*Strategy) bool { return true }) }

// NamesWith are the names of the strategies with a property.
func NamesWith(has func(*Strategy) bool) []api.StrategyName {
	var names []api.StrategyName
	for i := range strategies {
		if has(&strategies[i]) {
			names = append(names, strategies[i].Name)
		}
	}
	return names
}

// Default are those of policies that list none: all that need not be listed, the strongest enforcement first and whole devices last.
func Default() []api.StrategyName {
	sorted := slices.DeleteFunc(All(), func(s Strategy) bool { return s.Listed })
	slices.SortStableFunc(sorted, func(a, b Strategy) int {
		if a.Whole() != b.Whole() {
			return cmp.Compare(a.Unit, b.Unit)
		}
		return b.Tier.Rank() - a.Tier.Rank()
	})
	names := make([]api.StrategyName, len(sorted))
	for i := range sorted {
		names[i] = sorted[i].Name
	}
	return names
}
