package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	traces := flag.String("traces", "",
		"`DIR` with traces: each *gpu_memory*.csv and .csv.gz in it with the columns container, seconds and memory_mib")
	out := flag.String("json", "", "`FILE` to write the results of the traces to, as JSON")
	flag.Parse()
	if err := run(os.Stdout, *traces, *out); err != nil {
		fmt.Fprintln(os.Stderr, "backtest:", err)
		os.Exit(2)
	}
}

func run(w io.Writer, traces, out string) error {
	if traces == "" {
		return fmt.Errorf("-traces is missing: make backtest TRACES=DIR")
	}
	histories, files, err := readTraces(traces)
	if err != nil {
		return err
	}
	results := backtest(histories, stated)
	fmt.Fprintf(w, "%d containers in %s\n", len(histories), strings.Join(files, ", "))
	printResults(w, results)
	fmt.Fprintln(w)
	printKinds(w, backtestKinds(seeds))
	if out == "" {
		return nil
	}
	document := map[string]result{}
	for _, r := range results {
		document[r.name()] = r
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.WriteFile(out, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

func printResults(w io.Writer, results []result) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer t.Flush()
	fmt.Fprintln(t, "HISTORY\tSTATED\tCONTAINERS\tEXCEEDED\tMEDIAN SIZE/PEAK\tTOO SHORT\tFROM TABLE\tHALF SPLITS (MEAN, 10TH TO 90TH)")
	for _, r := range results {
		h := r.HalfSplits
		fmt.Fprintf(t, "%s\t%g%%\t%d\t%.1f%%\t%.2f\t%d\t%d\t%.1f%%, %.1f%% to %.1f%%\n", r.name(), r.Stated, r.Containers, r.Exceeded,
			r.MedianSizeOverPeak, r.TooShort, r.FromTable, h.Mean, h.Percentile10, h.Percentile90)
	}
}

func printKinds(w io.Writer, kinds []kindResult) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer t.Flush()
	fmt.Fprintln(t, "KIND\tHISTORIES\tWITHOUT SIZE\tEXCEEDED\tOF THESE WITHOUT MARK\tMEDIAN SIZE/PEAK\tMARKS")
	for _, k := range kinds {
		ratio := "-"
		if len(k.ratios) > 0 {
			ratio = fmt.Sprintf("%.2f", median(k.ratios))
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", k.name, k.histories, k.unsized, k.exceeded, k.unmarked, ratio, k.marksText())
	}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
