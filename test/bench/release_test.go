package bench

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// margin is how much more than the previous release this one may take. Medians of the same build differ by half of it.
const margin = 1.20

// TestCostBesidePreviousRelease fails where a create takes more than the previous release did, by the margin: in time, or in CPU
// time of the API server or of gpuslice's process. The builds take turns, each behind an API server of its own.
func TestCostBesidePreviousRelease(t *testing.T) {
	if !cluster.Wanted("long") {
		t.Skip("takes minutes of a quiet machine: set GPUSLICE_TEST=apiserver,long to run it (make bench-check)")
	}
	most := margin
	if text := os.Getenv("GPUSLICE_MARGIN"); text != "" {
		var err error
		if most, err = strconv.ParseFloat(text, 64); err != nil {
			t.Fatal("GPUSLICE_MARGIN: ", err)
		}
	}
	previous, what, err := install.Previous(t.Context(), t.TempDir(), "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	if previous == "" {
		t.Skipf("there is nothing to compare with: %s", what)
	}
	this, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	before, now := installed(t, previous), installed(t, this)
	setUp(t, before)
	setUp(t, now)
	fmt.Printf("%s\n%-10s %-16s %12s %12s %8s\n", what, "in flight", "of a create", "previous", "this", "ratio")
	for _, flight := range flights {
		taken := map[string]*cost{}
		for range rounds {
			measure(t, before, taken, "previous", ours, flight)
			measure(t, now, taken, "this", ours, flight)
		}
		was, is := taken["previous"], taken["this"]
		for _, f := range []struct {
			name    string
			was, is time.Duration
		}{
			{"p50", was.p50(), is.p50()}, {"API server CPU", median(was.server), median(is.server)},
			{"gpuslice CPU", median(was.own), median(is.own)},
		} {
			ratio := float64(f.is) / float64(f.was)
			fmt.Printf("%-10d %-16s %12s %12s %7.2fx\n", flight, f.name, f.was.Round(10*time.Microsecond), f.is.Round(10*time.Microsecond), ratio)
			if ratio > most {
				t.Errorf("%d in flight: %s of a create is %.2f times that of the previous release, at most %.2f", flight, f.name, ratio, most)
			}
		}
	}
}
