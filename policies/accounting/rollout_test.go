package accounting

import (
	"testing"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

func TestTimes(t *testing.T) {
	t.Parallel()
	t.Run("is bounded", func(t *testing.T) {
		t.Parallel()
		if got := times(quota.Charge{Memory: 1 << 40, Slices: 3, GPUs: 1}, 1<<40); got.Memory < 1<<40 || got.Slices < 1<<40 || got.GPUs != 1<<40 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("is exact up to the bound", func(t *testing.T) {
		t.Parallel()
		const third = quantity.MaxCharge / 3
		for amount, want := range map[int64]int64{0: 0, 5: 15, third: 3 * third, third + 1: quantity.MaxCharge} {
			if got := times(quota.Charge{Slices: amount}, 3).Slices; got != want {
				t.Errorf("3 times %d is %d, want %d", amount, got, want)
			}
		}
		if got := times(quota.Charge{Slices: 5}, 0); got != (quota.Charge{}) {
			t.Errorf("none of them is %+v", got)
		}
	})
}
