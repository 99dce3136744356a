package oncard

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

// Name is the argument of the program that starts Command.
const Name = "card"

const manual = `gpuslice-prove card tries on a GPU, without Kubernetes, which sentences about it hold, and writes a table.

Run it as root, on a device that nobody else uses. It takes at most 8 minutes.

Exit codes:
  0  no sentence fails
  1  at least one fails
  2  bad usage
  3  nothing was tried: NVML does not answer

Flags:
`

// A row takes at most 90 s and all rows 8 minutes, including the time in which their processes exit.
const (
	wholeLimit = 8*time.Minute - 2*endLimit
	rowLimit   = 90*time.Second - 2*endLimit
)

// Command runs the rows, and returns the program's exit code.
func Command(ctx context.Context, args []string, out, failures io.Writer) int {
	o, err := parse(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return exitHolds
	}
	if err != nil {
		fmt.Fprintln(failures, "gpuslice-prove card:", err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, wholeLimit)
	defer cancel()
	c, err := open(ctx, o)
	if err != nil {
		fmt.Fprintln(failures, "gpuslice-prove card:", err)
		return exitNoCard
	}
	file, err := o.create()
	if err != nil {
		fmt.Fprintln(failures, "gpuslice-prove card:", err)
		return exitNoCard
	}
	defer file.Close()
	found := c.try(ctx, table{io.MultiWriter(file, out), file})
	fmt.Fprintln(failures, "written:", file.Name())
	if slices.Contains(found, Fails) {
		return exitFails
	}
	return exitHolds
}

func parse(args []string, out io.Writer) (options, error) {
	o := options{}
	f := flag.NewFlagSet("gpuslice-prove "+Name, flag.ContinueOnError)
	f.SetOutput(out)
	f.Usage = func() { fmt.Fprint(out, manual); f.PrintDefaults() }
	f.StringVar(&o.out, "out", "out/gpu", "folder that takes the table, in a file named by the time")
	f.StringVar(&o.bin, "bin", "bin", "folder with gpuslice-guard")
	f.Func("row", "numbers of the rows to run, separated by commas (default: all)", func(text string) error {
		for word := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || !slices.ContainsFunc(rows(), func(r row) bool { return r.number == n }) {
				return fmt.Errorf("there is no row %q", word)
			}
			o.chosen = append(o.chosen, n)
		}
		return nil
	})
	f.IntVar(&o.device, "device", 0, "index of the device among the visible ones, in the order of the bus")
	f.IntVar(&o.terminations, "terminations", 20, "how many processes the guard has to terminate")
	f.DurationVar(&o.rowLimit, "row-limit", rowLimit, "how long a row may take until it is stopped")
	f.StringVar(&o.cudaLibrary, "cuda-library", "", "path of the driver's libcuda.so.1 (default: where the loader finds it)")
	f.StringVar(&o.nvmlLibrary, "nvml-library", "", "path of libnvidia-ml.so.1 (default: where the loader finds it)")
	f.StringVar(&o.cgroup, "cgroup", "", "folder of the program's own cgroup (default: found out)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.device < 0 || o.terminations < 1 || o.rowLimit <= 0 || o.rowLimit > rowLimit {
		return o, fmt.Errorf("unexpected arguments %q, or --device is below 0, --terminations below 1, or --row-limit not within %s", f.Args(), rowLimit)
	}
	return o, nil
}

func (o options) create() (*os.File, error) {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of the table: %w", err)
	}
	return os.Create(filepath.Join(o.out, time.Now().UTC().Format("20060102T150405Z")+".md"))
}

// table is where the rows go as they end.
type table struct {
	io.Writer
	file *os.File
}

func (t table) line(format string, args ...any) {
	fmt.Fprintf(t, format+"\n", args...)
	_ = t.file.Sync() // for a machine that is lost: a file system that cannot has written it all the same
}

// try runs the rows, and returns their states.
func (c *card) try(ctx context.Context, t table) (states []State) {
	t.line("%s, %s, driver %s, %s\n", c.device.Name, guard.FormatBytes(c.device.TotalBytes), c.version, time.Now().UTC().Format("2006-01-02"))
	t.line("| row | sentence | state | figures |\n|---|---|---|---|")
	for _, r := range rows() {
		if len(c.chosen) > 0 && !slices.Contains(c.chosen, r.number) {
			continue
		}
		checks := c.runRow(ctx, r)
		states = append(states, state(checks))
		t.line("| %d | %s | %s | %s |", r.number, r.sentence, state(checks), details(checks))
	}
	return states
}

// runRow runs a row for its time, and terminates its processes.
func (c *card) runRow(ctx context.Context, r row) []check {
	ctx, cancel := context.WithTimeout(ctx, c.rowLimit)
	c.over = ctx.Done()
	defer c.end()
	defer cancel()
	return r.run(ctx, c)
}
