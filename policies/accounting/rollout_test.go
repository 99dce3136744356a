package accounting

import (
	"testing"

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
}
