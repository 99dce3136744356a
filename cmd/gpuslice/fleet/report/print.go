package report

import (
	"fmt"
	"io"
	"strconv"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

func (o *options) print(s cli.Streams, r *report) error {
	for _, e := range r.Errors {
		fmt.Fprintf(s.Err, "%s: %s\n", e.Source, e.Message)
	}
	if o.output.Format == csvFormat {
		return o.printCSV(s.Out, r)
	}
	if len(r.Items) == 0 && !cli.IsDocument(o.output.Format) {
		fmt.Fprintf(s.Err, "nothing was held from %s until %s\n", r.From.Format("2006-01-02"), r.Until.Format("2006-01-02 15:04 UTC"))
		return nil
	}
	return o.output.Print(s.Out, cli.Answer{Document: r, Page: func() *cli.Page {
		page := &cli.Page{}
		page.Table("", o.table(r))
		return page
	}})
}

// columns are those of the rows' groups.
func (o *options) columns(namespace, pool, label string) (out []string) {
	for _, c := range []struct {
		shown bool
		text  string
	}{{o.grouping.namespace, namespace}, {o.grouping.pool, pool}, {o.grouping.label != "", label}} {
		if c.shown {
			out = append(out, c.text)
		}
	}
	return out
}

// table is for people: hours with one decimal.
func (o *options) table(r *report) [][]string {
	header := append(o.columns("NAMESPACE", "POOL", o.grouping.label), "GIB-HOURS", "DEVICE-HOURS", "USED", "READ", "UNSURE")
	if len(o.price) > 0 {
		header = append(header, "COST")
	}
	rows := [][]string{header}
	for _, i := range r.Items {
		used, read := "unknown", "0%"
		if i.UsedGiBHours != nil {
			used, read = fmt.Sprintf("%.1f", *i.UsedGiBHours), fmt.Sprintf("%.0f%%", 100*i.UsedReadRatio)
		}
		cells := append(o.columns(i.Namespace, i.Pool, i.Label), fmt.Sprintf("%.1f", i.HeldGiBHours),
			fmt.Sprintf("%.2f", i.HeldDeviceHours), used, read)
		unsure := ""
		if i.UnsureGiBHours > 0 {
			unsure = fmt.Sprintf("%.1f", i.UnsureGiBHours)
		}
		cells = append(cells, unsure)
		if len(o.price) > 0 {
			cells = append(cells, money(i.Cost))
		}
		rows = append(rows, cells)
	}
	return rows
}

func money(cost *float64) string {
	if cost == nil {
		return ""
	}
	return strconv.FormatFloat(*cost, 'f', 2, 64)
}

// printCSV prints a header and a line for each row. A cell is empty where nothing is known.
func (o *options) printCSV(out io.Writer, r *report) error {
	lines := [][]string{append(o.columns("namespace", "pool", o.grouping.label),
		"held_gib_hours", "held_device_hours", "used_gib_hours", "used_read_ratio", "unsure_gib_hours", "unsure_device_hours", "cost")}
	if o.output.NoHeaders {
		lines = nil
	}
	for _, i := range r.Items {
		used := ""
		if i.UsedGiBHours != nil {
			used = plain(*i.UsedGiBHours)
		}
		lines = append(lines, append(o.columns(i.Namespace, i.Pool, i.Label),
			plain(i.HeldGiBHours), plain(i.HeldDeviceHours), used, plain(i.UsedReadRatio),
			plain(i.UnsureGiBHours), plain(i.UnsureDeviceHours), money(i.Cost)))
	}
	return cli.PrintCSV(out, lines)
}

func plain(n float64) string { return strconv.FormatFloat(n, 'f', 4, 64) }
