package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/cmd/prove/proof"
)

// Exit codes.
const (
	exitHeld    = 0
	exitNotHeld = 1
	exitUsage   = 2 // also: others have memory of the device, and --yes is missing
	exitUnknown = 3 // nothing follows from at least one attempt, or nothing was tried
)

const manual = `gpuslice-prove tries what holds a program to its slice of a GPU.

It allocates a little more than the slice in each way that CUDA has, each time in processes of its own, waits for whoever
ends them, frees all, and reports what held them: hardware, the driver, an MPS daemon, a guard, or nothing.

Usage:
  gpuslice-prove --slice 4Gi
  gpuslice-prove --slice 4Gi --way cuMemAlloc,many-processes --yes
  gpuslice-prove card    which sentences about memory, MPS and termination hold on a card; --help lists its flags

Exit codes:
  0  each attempt was held
  1  at least one was not
  2  bad usage, or --yes is missing where others have memory of the device
  3  nothing follows from at least one attempt, and all others were held; or nothing was tried

Flags:
`

// process has the system's inputs of the command.
type process struct {
	out, err io.Writer
	lookup   func(string) (string, bool)
	cgroup   string // folder of the process's own
}

// memoryVariable has the slice in a container that got one.
const memoryVariable = "GPUSLICE_MEMORY_BYTES"

// options are the flags.
type options struct {
	slice, past              amount
	ways                     ways
	device                   int
	watch                    time.Duration
	yes, json                bool
	terminationMessagePath   string
	cudaLibrary, nvmlLibrary string
	cgroup                   string
}

func command(ctx context.Context, args []string, p process) int {
	o, err := parse(args, p)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitHeld
	case errors.Is(err, errVersion):
		fmt.Fprintln(p.out, version)
		return exitHeld
	case err != nil:
		fmt.Fprintln(p.err, "gpuslice-prove:", err)
		return exitUsage
	}
	report, err := prove(ctx, o, p)
	if err != nil {
		fmt.Fprintln(p.err, "gpuslice-prove:", err)
		o.leaveMessage(err.Error())
		if errors.Is(err, errNeighbors) {
			return exitUsage
		}
		return exitUnknown
	}
	encoded, err := json.Marshal(report)
	if err != nil {
		fmt.Fprintln(p.err, "gpuslice-prove: encode the report:", err)
		return exitUnknown
	}
	o.leaveMessage(string(encoded))
	if o.json {
		fmt.Fprintln(p.out, string(encoded))
	} else {
		printReport(p.out, report)
	}
	switch report.Weakest() {
	case proof.Nothing, proof.Unknown:
		return exitNotHeld
	case "":
		if slices.ContainsFunc(report.Attempts, func(a proof.Attempt) bool { return a.Held == proof.Nothing || a.Held == proof.Unknown }) {
			return exitNotHeld
		}
		return exitUnknown
	}
	return exitHeld
}

var errVersion = errors.New("version")

func parse(args []string, p process) (options, error) {
	o := options{ways: proof.Ways(), cgroup: p.cgroup}
	f := flag.NewFlagSet("gpuslice-prove", flag.ContinueOnError)
	f.SetOutput(p.out)
	f.Usage = func() { fmt.Fprint(p.out, manual); f.PrintDefaults() }
	f.Var(&o.slice, "slice", "the slice: 4Gi, or a number of bytes (default: that of "+memoryVariable+")")
	f.Var(&o.past, "past", "how far to go past it (default: a sixteenth of the slice, at least 256Mi)")
	f.Var(&o.ways, "way", "ways to try, separated by commas")
	f.IntVar(&o.device, "device", 0, "index of the device among the visible ones, in the order of the bus")
	f.DurationVar(&o.watch, "watch", time.Minute, "how long to wait for an end once past the slice")
	f.BoolVar(&o.yes, "yes", false, "go on where others have memory of the device: an allocation of theirs may fail meanwhile")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	f.StringVar(&o.terminationMessagePath, "termination-message-path", "", "file that takes the report as JSON, too")
	f.StringVar(&o.cudaLibrary, "cuda-library", "", "path of the driver's libcuda.so.1 (default: where the loader finds it)")
	f.StringVar(&o.nvmlLibrary, "nvml-library", "", "path of libnvidia-ml.so.1 (default: where the loader finds it)")
	showVersion := f.Bool("version", false, "print the version")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if *showVersion {
		return o, errVersion
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if text, ok := p.lookup(memoryVariable); ok && o.slice == 0 {
		if err := o.slice.Set(text); err != nil {
			return o, fmt.Errorf("%s: %w", memoryVariable, err)
		}
	}
	return o, o.check()
}

const (
	leastPast = 256 << 20
	mostWatch = 10 * time.Minute
)

// check completes the options.
func (o *options) check() error {
	if o.past == 0 {
		o.past = max(o.slice/16, leastPast)
	}
	switch {
	case o.slice <= 0:
		return fmt.Errorf("--slice is missing, and so is %s", memoryVariable)
	case o.past < 0 || o.past > o.slice:
		return errors.New("--past: at most as much as the slice")
	case o.watch <= 0 || o.watch > mostWatch:
		return fmt.Errorf("--watch: more than 0, at most %s", mostWatch)
	case o.device < 0:
		return errors.New("--device: 0 or more")
	}
	return nil
}

// leaveMessage writes where the kubelet reads; a container without such a file has none.
func (o options) leaveMessage(text string) {
	if o.terminationMessagePath != "" {
		_ = os.WriteFile(o.terminationMessagePath, []byte(text), 0o644)
	}
}

// amount is a number of bytes, written with a unit or without.
type amount int64

func (a *amount) String() string { return strconv.FormatInt(int64(*a), 10) }

func (a *amount) Set(text string) error {
	units := map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "": 1}
	digits := strings.TrimRight(text, "KMGi")
	n, err := strconv.ParseInt(digits, 10, 64)
	unit := units[text[len(digits):]]
	if err != nil || n <= 0 || unit == 0 || n > (1<<50)/unit {
		return fmt.Errorf("%q is no amount of memory: write 4Gi, 512Mi, or a number of bytes", text)
	}
	*a = amount(n * unit)
	return nil
}

// ways are those to try.
type ways []proof.Way

func (w *ways) String() string {
	var names []string
	for _, way := range *w {
		names = append(names, string(way))
	}
	return strings.Join(names, ",")
}

func (w *ways) Set(text string) error {
	*w = nil
	all := ways(proof.Ways())
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(all, proof.Way(name)) {
			return fmt.Errorf("there is no way %q: there are %s", name, all.String())
		}
		if !slices.Contains(*w, proof.Way(name)) {
			*w = append(*w, proof.Way(name))
		}
	}
	return nil
}

// version is stamped by the linker: -X main.version=v0.1.0.
var version = "devel"
