package report

import (
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/price"
)

func TestParsePeriod(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)
	for _, c := range []struct{ since, until, want string }{
		{"30d", "", "2026-10-23 00:00 to 2026-11-22 12:30"},
		{"12h", "", "2026-11-22 00:00 to 2026-11-22 12:30"},
		{"13h", "", "2026-11-21 00:00 to 2026-11-22 12:30"},
		{"90m", "", "2026-11-22 00:00 to 2026-11-22 12:30"},
		{"2w", "1w", "2026-11-08 00:00 to 2026-11-16 00:00"},
		{"2026-10-01", "2026-11-01", "2026-10-01 00:00 to 2026-11-01 00:00"},
		{"2026-11-01", "2026-12-01", "2026-11-01 00:00 to 2026-11-22 12:30"},
		{"2026-11-22", "", "2026-11-22 00:00 to 2026-11-22 12:30"},
		{"2026-11-23", "", ""}, {"2026-11-01", "2026-11-01", ""}, {"", "", ""}, {"30", "", ""},
		{"-1d", "", ""}, {"999999w", "", ""}, {"1001-01-01", "", ""},
		{"30d", "soon", ""}, {"2026-13-01", "", ""},
	} {
		p, err := parsePeriod(c.since, c.until, now)
		got := ""
		if err == nil {
			got = p.from.Format("2006-01-02 15:04") + " to " + p.until.Format("2006-01-02 15:04")
		}
		if got != c.want {
			t.Errorf("since %q until %q: %q, want %q (%v)", c.since, c.until, got, c.want, err)
		}
	}
}

func TestParsePrices(t *testing.T) {
	for _, texts := range [][]string{{"a100"}, {"=1"}, {"a100=-1"}, {"a100=1", "a100=2"}, {"a[=1"}, {strings.Repeat("a", 254) + "=1"}} {
		if p, err := parsePrices(texts); err == nil {
			t.Errorf("%q are %v", texts, p)
		}
	}
	p, err := parsePrices([]string{"a100=2.40", "*=1"})
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := priceOf(p, "a100"); a != 2.40 {
		t.Errorf("a100 costs %v", a)
	}
	if _, by := priceOf(price.List{"a100": 1}, "l4"); by != "" {
		t.Error("l4 has a price")
	}
	p = price.List{"*": 1, "a100": 2, "nvidia-a100-sxm4-80gb": 3, "l4": 4, "H100*": 5,
		"a100-sxm4-80gb-time-slicing-4-fd92e6cf": 6, "l4-time-slicing-?-*": 7}
	for pool, want := range map[string]float64{
		"a100-sxm4-80gb-time-slicing-4-fd92e6cf": 6, "a100-sxm4-80gb-time-slicing-8-aaaaaaaa": 3, "a100-pcie-40gb-exclusive-bbbbbbbb": 2,
		"l4-exclusive-cccccccc": 4, "l4-time-slicing-4-dddddddd": 7, "l40s-exclusive-eeeeeeee": 1, "h100-mps": 5, "nvidia.com/gpu": 1, "": 1,
	} {
		if got, by := priceOf(p, pool); got != want {
			t.Errorf("pool %q costs %v by %q, want %v", pool, got, by, want)
		}
	}
}
