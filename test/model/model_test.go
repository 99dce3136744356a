package model

import (
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/test/cluster"
)

func TestLedger(t *testing.T) {
	for name, v := range map[string]Variant{
		"no order of steps breaks an invariant with three pods": {},
		"nor with lists that serve for later ledgers":           {TwoPods: true, Rebase: RebaseByRank},
		"nor with what watches have shown":                      {TwoPods: true, Fold: RebaseByRank, Rebase: RebaseByRank},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			worlds, broken := Explore(v)
			if broken != nil {
				t.Fatalf("%s:\n  %s\n%+v", broken.What, strings.Join(broken.Trace, "\n  "), broken.Last)
			}
			t.Logf("%d worlds in %v", worlds, time.Since(begin))
			if worlds < 10_000 {
				t.Errorf("%d worlds are too few to have seen every order", worlds)
			}
		})
	}
}

// TestTwoWatches takes minutes and 3 GB. With lists that serve for later ledgers too it would take more than 8 GB.
func TestTwoWatches(t *testing.T) {
	if !cluster.Wanted("long") {
		t.Skip(`GPUSLICE_TEST is without "long"`)
	}
	worlds, broken := Explore(Variant{TwoPods: true, TwoViews: true, Fold: RebaseByRank})
	if broken != nil || worlds < 1_000_000 {
		t.Fatalf("%d worlds, found %+v", worlds, broken)
	}
	t.Logf("%d worlds", worlds)
}

func TestLedgerRules(t *testing.T) {
	t.Run("the model finds what each rule is for", func(t *testing.T) {
		const overshoot, untrue = "more lives than the quota allows", "a request was denied although there was room all the time"
		for name, c := range map[string]struct {
			variant Variant
			want    string
		}{
			"counting from a cache":                  {Variant{CountFromCache: true}, overshoot},
			"releasing on deletionTimestamp":         {Variant{ReleaseEarly: true}, overshoot},
			"listing before reading the ledger":      {Variant{ListBeforeLedger: true}, overshoot},
			"expiry without a list":                  {Variant{ExpireUnlisted: true}, overshoot},
			"judging ages after the list":            {Variant{ExpireLate: true}, overshoot},
			"writing without comparing":              {Variant{WriteBlindly: true}, overshoot},
			"denying by what was read, without list": {Variant{DenyUnseen: true}, untrue},
			"an old list over a later one":           {Variant{TwoPods: true, Rebase: RebaseAlways}, overshoot},
			"an old watch over a later list":         {Variant{TwoPods: true, Fold: RebaseAlways}, overshoot},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				worlds, broken := Explore(c.variant)
				if broken == nil || broken.What != c.want {
					t.Fatalf("%d worlds, found %+v, want: %s", worlds, broken, c.want)
				}
				t.Logf("%s, after %d worlds:\n  %s", broken.What, worlds, strings.Join(broken.Trace, "\n  "))
			})
		}
	})
}
