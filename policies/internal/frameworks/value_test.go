package frameworks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func TestFormulas(t *testing.T) {
	t.Parallel()
	of := func(share, total int64, view View) amounts {
		return amountsOf(&Input{SliceBytes: share, TotalBytes: total, AllowanceBytes: 512 << 20, View: view})
	}
	a100 := of(10*giB, 80*giB, ViewWhole)
	tests := []struct {
		formula string
		a       amounts
		want    string
		err     error
	}{
		{"fraction", a100, "0.118750", nil},
		{"bytes", a100, "10200547328", nil},
		{"mebibytes", a100, "9728", nil},
		{"headroomBytes", a100, "75161927680", nil},
		{"headroomMebibytes", a100, "71680", nil},
		{"fitMebibytes", a100, "72704", nil},
		{"wiggle", a100, "0.987499", nil},
		{"utilization", a100, "0.1218", nil},
		{"staticFraction", a100, "0.1187", nil},
		{"fraction", of(10*giB, 0, ViewWhole), "", errNoTotal},
		{"fraction", of(10*giB, 80*giB, ViewSliced), "", errSliced},
		{"fraction", of(10*giB, 80*giB, ViewUnknown), "", errView},
		{"fraction", of(81*giB, 80*giB, ViewWhole), "", errWhole},
		{"headroomBytes", of(80*giB, 80*giB, ViewWhole), "", errWhole},
		{"headroomMebibytes", of(10*giB, 80*giB, ViewLimitedFree), "", errFree},
		{"wiggle", of(10*giB, 80*giB, ViewSliced), "", errSliced},
		{"utilization", of(10*giB, 0, ViewLimitedFree), "", errNoTotal},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s of %s in %s, %s", tt.formula, size(tt.a.perProcess), size(tt.a.total), tt.a.view), func(t *testing.T) {
			t.Parallel()
			got, err := formulas[tt.formula](tt.a)
			if !errors.Is(err, tt.err) || err == nil && got != tt.want {
				t.Errorf("got %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestFraction(t *testing.T) {
	t.Parallel()
	// Over real cards and every MiB-odd slice: a fraction is written plainly, lies within (0,1), and is never worth more than the budget.
	t.Run("never exceeds the budget", func(t *testing.T) {
		t.Parallel()
		for _, total := range []int64{t4, 23034 << 20, 24576 << 20, 40960 << 20, 46068 << 20, 81559 << 20, 143771 << 20, 196608 << 20} {
			for share := int64(513 << 20); share < total; share += 977 << 20 {
				a := amountsOf(&Input{SliceBytes: share, TotalBytes: total, AllowanceBytes: 512 << 20, View: ViewWhole})
				text, err := fraction(a)
				if err != nil {
					t.Fatalf("%s of %s: %v", size(share), size(total), err)
				}
				f, err := strconv.ParseFloat(text, 64)
				if err != nil || len(text) != 8 || !strings.HasPrefix(text, "0.") || f <= 0 || f >= 1 {
					t.Fatalf("%q is no plain fraction", text)
				}
				if got := int64(f * float64(total)); got > a.budget || got < a.budget-total/1e6-1 {
					t.Errorf("%s of %s is worth %d, the budget is %d", text, size(total), got, a.budget)
				}
			}
		}
	})
}

func TestHumanSize(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{0: "0Mi", 512 << 20: "512Mi", 8 << 30: "8Gi", 8<<30 - 1: "7.9Gi",
		9728 << 20: "9.5Gi", 1<<20 + 1: "1Mi", 1<<62 + 1: "4294967296Gi"} {
		if got := size(bytes); got != want {
			t.Errorf("%d: got %q, want %q", bytes, got, want)
		}
	}
}
