package policies

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func TestProfileFormulas(t *testing.T) {
	t.Parallel()
	amounts := func(share, total int64, view ProfileView) profileAmounts {
		return profileAmountsOf(&ProfileInput{SliceBytes: share, TotalBytes: total, AllowanceBytes: 512 << 20, View: view})
	}
	a100 := amounts(10*profileGiB, 80*profileGiB, ProfileViewWhole)
	tests := []struct {
		formula string
		a       profileAmounts
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
		{"fraction", amounts(10*profileGiB, 0, ProfileViewWhole), "", errProfileNoTotal},
		{"fraction", amounts(10*profileGiB, 80*profileGiB, ProfileViewSliced), "", errProfileSliced},
		{"fraction", amounts(10*profileGiB, 80*profileGiB, ProfileViewUnknown), "", errProfileView},
		{"fraction", amounts(81*profileGiB, 80*profileGiB, ProfileViewWhole), "", errProfileWhole},
		{"headroomBytes", amounts(80*profileGiB, 80*profileGiB, ProfileViewWhole), "", errProfileWhole},
		{"headroomMebibytes", amounts(10*profileGiB, 80*profileGiB, ProfileViewLimitedFree), "", errProfileFree},
		{"wiggle", amounts(10*profileGiB, 80*profileGiB, ProfileViewSliced), "", errProfileSliced},
		{"utilization", amounts(10*profileGiB, 0, ProfileViewLimitedFree), "", errProfileNoTotal},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s of %s in %s, %s", tt.formula, profileSize(tt.a.share), profileSize(tt.a.total), tt.a.view), func(t *testing.T) {
			t.Parallel()
			got, err := profileFormulas[tt.formula](tt.a)
			if !errors.Is(err, tt.err) || err == nil && got != tt.want {
				t.Errorf("got %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// Over real cards and every MiB-odd slice: a fraction is written plainly, lies within (0,1), and is never worth more than the budget.
func TestProfileFractionNeverExceedsTheBudget(t *testing.T) {
	t.Parallel()
	for _, total := range []int64{profileT4, 23034 << 20, 24576 << 20, 40960 << 20, 46068 << 20, 81559 << 20, 143771 << 20, 196608 << 20} {
		for share := int64(513 << 20); share < total; share += 977 << 20 {
			a := profileAmountsOf(&ProfileInput{SliceBytes: share, TotalBytes: total, AllowanceBytes: 512 << 20, View: ProfileViewWhole})
			text, err := profileFraction(a)
			if err != nil {
				t.Fatalf("%s of %s: %v", profileSize(share), profileSize(total), err)
			}
			f, err := strconv.ParseFloat(text, 64)
			if err != nil || len(text) != 8 || !strings.HasPrefix(text, "0.") || f <= 0 || f >= 1 {
				t.Fatalf("%q is no plain fraction", text)
			}
			if got := int64(f * float64(total)); got > a.budget || got < a.budget-total/1e6-1 {
				t.Errorf("%s of %s is worth %d, the budget is %d", text, profileSize(total), got, a.budget)
			}
		}
	}
}

func TestProfileSizesForPeople(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{0: "0Mi", 512 << 20: "512Mi", 8 << 30: "8Gi", 8<<30 - 1: "7.9Gi", 9728 << 20: "9.5Gi", 1<<20 + 1: "1Mi", 1<<62 + 1: "4294967296Gi"} {
		if got := profileSize(bytes); got != want {
			t.Errorf("%d: got %q, want %q", bytes, got, want)
		}
	}
}
