package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gpuslice/gpuslice/cmd/prove/proof"
	"github.com/gpuslice/gpuslice/guard"
)

func printReport(out io.Writer, r proof.Report) {
	fmt.Fprintf(out, "driver %s, %s, slice %s, %s\n\n", cmp.Or(r.Driver, "unknown"),
		cmp.Or(r.Device, "unknown device"), guard.FormatBytes(r.SliceBytes), r.Taken.Format("2006-01-02"))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WAY\tHELD BY\tREACHED\tAFTER\tDETAIL")
	for _, a := range r.Attempts {
		after := "-"
		if a.ReactionMilliseconds > 0 {
			after = fmt.Sprintf("%.1fs", float64(a.ReactionMilliseconds)/1000)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", a.Way, cmp.Or(a.Held, "?"), guard.FormatBytes(a.ReachedBytes), after, a.Detail)
	}
	w.Flush()
	if r.Readings != nil {
		fmt.Fprintf(out, "\nNVML in this container: PIDs %s, amounts %s", r.Readings.PIDs, r.Readings.Amounts)
		if r.Readings.Detail != "" {
			fmt.Fprintf(out, " (%s)", r.Readings.Detail)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "Proven tier: %s\n", r.Tier())
}
