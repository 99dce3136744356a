package quota

import (
	"testing"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func TestNewReport(t *testing.T) {
	t.Run("is bounded", func(t *testing.T) {
		var q policies.Quota
		one := int64(1)
		for range maxFigures + 7 {
			q.Limits = append(q.Limits, policies.QuotaLimit{Name: "a", Limits: policies.QuotaLimits{Slices: &one}})
		}
		r := NewReport(policies.Input{Policy: &policies.Policy{}}, ledger.Budget{}, q, ledger.State{})
		if len(r.Figures) != maxFigures || r.More != 7 {
			t.Errorf("%d figures, %d more", len(r.Figures), r.More)
		}
	})
}
