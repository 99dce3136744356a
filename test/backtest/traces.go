package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/history"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/sizing"
)

// Traces are compared by what they state, and after so many hours.
const (
	stated   = 95
	leastAll = 10 // hours of samples without which a container is tested nowhere: the columns then are about the same containers
	leastAft = 1  // hours after the cut, without which there is nothing to test
	maxLOO   = 1000
)

var hoursTested = []float64{1, 3, 6, 9, 11}

// result is the result of the estimates after so many hours.
type result struct {
	hours              float64
	Stated             float64 `json:"stated"`                // per cent
	Containers         int     `json:"containers"`            // tested
	Exceeded           float64 `json:"exceeded"`              // per cent of them
	MedianSizeOverPeak float64 `json:"median_size_over_peak"` // the peak of all of a container's samples
	TooShort           int     `json:"refused"`
	FromTable          int     `json:"from_table"` // of the tested ones, since there were too few others
	HalfSplits         spread  `json:"half_splits"`
}

// spread is the per cent that exceeded their sizes where one random half calibrates and the other is tested. Leaving out one at a
// time cannot show it: the rank decides there how many exceed.
type spread struct {
	Splits       int     `json:"splits"`
	Mean         float64 `json:"mean"`
	Percentile10 float64 `json:"p10"`
	Percentile90 float64 `json:"p90"`
}

const (
	halfSplits = 200
	splitSeed  = 1
)

func halves(pairs []sizing.Pair, hours, coverage float64) (s spread) {
	r := rand.New(rand.NewPCG(splitSeed, splitSeed))
	var all []float64
	pairs = slices.Clone(pairs)
	for range halfSplits {
		r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		c := sizing.Calibrate(pairs[:len(pairs)/2])
		exceeded, tested := 0.0, 0.0
		for _, p := range pairs[len(pairs)/2:] {
			size, _, ok := c.SizeOrTable(p.Before, hours, coverage)
			if !ok || p.Before <= sizing.DriverContext {
				continue
			}
			if tested++; p.After > size {
				exceeded++
			}
		}
		if tested > 0 {
			all = append(all, 100*exceeded/tested)
			s.Mean += 100 * exceeded / tested
		}
	}
	if len(all) == 0 {
		return spread{}
	}
	slices.Sort(all)
	return spread{len(all), s.Mean / float64(len(all)), all[len(all)/10], all[len(all)*9/10]}
}

func (r *result) name() string { return fmt.Sprintf("%gh", r.hours) }

// readTraces reads the histories of the containers in a folder's traces. Files without the columns are passed over.
func readTraces(folder string) (histories []*sizing.History, read []string, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*gpu_memory*.csv*"))
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		if !strings.HasSuffix(path, ".csv") && !strings.HasSuffix(path, ".csv.gz") {
			continue
		}
		found, err := readTrace(path)
		if errors.Is(err, errNoTrace) {
			fmt.Fprintf(os.Stderr, "backtest: %s is passed over: %v\n", filepath.Base(path), err)
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", path, err)
		}
		histories, read = append(histories, found...), append(read, filepath.Base(path))
	}
	if len(histories) == 0 {
		return nil, nil, fmt.Errorf("%s has no *gpu_memory*.csv or .csv.gz with samples", folder)
	}
	return histories, read, nil
}

// errNoTrace is returned for a file without the columns of a trace.
var errNoTrace = errors.New("its columns are not container, seconds and memory_mib")

func readTrace(path string) (histories []*sizing.History, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	buffered := bufio.NewReaderSize(in, 4096)
	if !isTrace(buffered) {
		return nil, errNoTrace
	}
	records := history.NewRecords()
	if err := records.ReadCSV(buffered); err != nil {
		return nil, err
	}
	for _, r := range records.All() {
		histories = append(histories, &r.Memory)
	}
	return histories, nil
}

// isTrace looks at the header.
func isTrace(in *bufio.Reader) bool {
	start, _ := in.Peek(4096) // an error is found again when the file is read
	header, _, _ := strings.Cut(string(start), "\n")
	columns := strings.Split(strings.TrimPrefix(header, "\ufeff"), ",")
	for i := range columns {
		columns[i] = strings.Trim(columns[i], "\" \t\r")
	}
	for _, name := range []string{"container", "seconds", "memory_mib"} {
		if !slices.Contains(columns, name) {
			return false
		}
	}
	return true
}

// backtest estimates every container from its first hours and from the histories of the others, never of itself.
func backtest(histories []*sizing.History, stated float64) (results []result) {
	for _, hours := range hoursTested {
		r := result{hours: hours, Stated: stated}
		var pairs []sizing.Pair
		for _, h := range histories {
			if p, ok := h.Split(hours, 0, leastAft); ok && h.Hours() >= leastAll {
				pairs = append(pairs, p)
			}
		}
		r.TooShort = len(histories) - len(pairs)
		r.test(pairs)
		r.HalfSplits = halves(pairs, hours, stated/100)
		results = append(results, r)
	}
	return results
}

func (r *result) test(pairs []sizing.Pair) {
	var ratios []float64
	exceeded := 0
	folds := min(len(pairs), maxLOO)
	for fold := range folds {
		var tested, others []sizing.Pair
		for i, p := range pairs {
			if i%folds == fold {
				tested = append(tested, p)
			} else {
				others = append(others, p)
			}
		}
		c := sizing.Calibrate(others)
		for _, p := range tested {
			size, fromTable, ok := c.SizeOrTable(p.Before, r.hours, r.Stated/100)
			if !ok || p.Before <= sizing.DriverContext {
				r.TooShort++
				continue
			}
			if fromTable {
				r.FromTable++
			}
			if p.After > size {
				exceeded++
			}
			ratios = append(ratios, size/max(p.Before, p.After))
		}
	}
	r.Containers = len(ratios)
	r.MedianSizeOverPeak = median(ratios)
	if len(ratios) > 0 {
		r.Exceeded = 100 * float64(exceeded) / float64(len(ratios))
	}
}
