package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// Exit codes.
const (
	exitOK = 0
	// A Job's podFailurePolicy judges our containers too, by codes that programs end with: ours are not among them.
	exitFailed = 75 // a check failed, a probe has something to report
	exitUsage  = 78 // flags or environment cannot be read
)

const manual = `guard enforces the GPU memory slices of the pod it runs in.

Usage:
  guard check   Check what the plan relies on (the init container)
  guard run     Sample usage, warn, and terminate processes over their slice (the sidecar)
  guard status  Print the status of the running guard (the kubelet's exec probes)

The limits come from the environment (GPUSLICE_GUARD_*), which the webhook
writes.

Examples:
  guard check --termination-message-path /dev/termination-log
  guard run --dry-run
  guard status --startup     exit 0 once the guard has sampled the devices
  guard status --liveness    fail once with the pending messages, or when the guard is stuck
  guard status --readiness   fail while the guard cannot enforce the pod's slice
  guard --version

guard COMMAND --help lists the flags of a command.
`

// process has the system's inputs of the command.
type process struct {
	out, err io.Writer
	lookup   func(string) (string, bool)
}

// options are the flags of all commands.
type options struct {
	dryRun                 bool
	nvmlLibrary            string
	procDir                string
	terminationMessagePath string
	observationPath        string
	shimFolder             string
	execProgram            string
	level                  slog.Level
	probe                  probe
}

// command runs one command line and returns its exit code.
func command(ctx context.Context, args []string, p process) int {
	if len(args) == 0 {
		fmt.Fprint(p.err, manual)
		return exitUsage
	}
	commands := map[string]func(context.Context, options, process) int{"check": check, "run": run, "status": status}
	switch name := args[0]; name {
	case "--version", "-version", "version":
		fmt.Fprintln(p.out, version)
		return exitOK
	case "--help", "-help", "-h", "help":
		fmt.Fprint(p.out, manual)
		return exitOK
	default:
		do, known := commands[name]
		if !known {
			fmt.Fprintf(p.err, "guard: unknown command %q\n\n%s", name, manual)
			return exitUsage
		}
		o, err := flags(name, args[1:], p.err)
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		if err != nil {
			return exitUsage
		}
		return do(ctx, o, p)
	}
}

// flags reads the flags of a command. The flag package has printed any error.
func flags(name string, args []string, out io.Writer) (options, error) {
	o := options{probe: statusProbe}
	f := flag.NewFlagSet("guard "+name, flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&o.procDir, "proc-dir", "/proc", "directory where the pod's proc file system is mounted")
	f.StringVar(&o.terminationMessagePath, "termination-message-path", "/dev/termination-log",
		"the container's termination log, through which the guard also answers probes")
	if name != "status" {
		f.StringVar(&o.nvmlLibrary, "nvml-library", "", "NVML library to load (default: libnvidia-ml.so.1)")
		f.TextVar(&o.level, "log-level", slog.LevelInfo, "lowest level that is logged: DEBUG, INFO, WARN or ERROR")
	}
	if name == "check" {
		f.StringVar(&o.shimFolder, "shim-folder", "", "folder that takes the shim for PyTorch, which the pod's containers mount (default: none)")
		f.StringVar(&o.execProgram, "exec-program", "/"+path.Base(limits.ShimProgram),
			"program that starts others with the shim, which goes there too")
	}
	if name == "run" {
		f.StringVar(&o.observationPath, "observation-path", limits.ObservationPath,
			"file with the pod's annotation gpuslice.dev/observed, which lists messages that arrived at the API server")
		f.BoolVar(&o.dryRun, "dry-run", false, "report every decision and signal nothing")
	}
	if name == "status" {
		for _, p := range []probe{startupProbe, livenessProbe, readinessProbe} {
			f.BoolFunc(string(p), "answer as a "+string(p)+" probe", func(string) error { o.probe = p; return nil })
		}
	}
	if err := f.Parse(args); err != nil {
		return options{}, err
	}
	if f.NArg() > 0 {
		fmt.Fprintf(out, "guard %s: unexpected argument %q\n", name, f.Arg(0))
		return options{}, errors.New("unexpected argument")
	}
	return o, nil
}

// version is stamped by the linker: -X main.version=v0.1.0.
var version = "devel"
