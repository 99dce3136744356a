package guard_test

import (
	"testing"

	"github.com/gpuslice/gpuslice/test/bench/guard/world"
)

func TestNoFalseTermination(t *testing.T) {
	t.Parallel()
	steps := 50_000
	if testing.Short() {
		steps = 5_000
	}
	for seed := range uint64(4) {
		got := world.New(seed).Run(steps)
		if got.False != 0 {
			t.Errorf("seed %d: %d false terminations in %d steps; %s", seed, got.False, got.Steps, got.Why)
		}
		if got.Terminated < steps/1000 || got.Warned == 0 || got.NotEnforcing == 0 {
			t.Errorf("seed %d: the world is too quiet to show anything: %+v", seed, got)
		}
	}
}
