package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/mps"
	"github.com/gpuslice/gpuslice/guard/shim"
	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/guard/ticks"
)

// finding is the result of checking one thing that the plan relies on.
type finding struct {
	subject string
	detail  string // the finding
	err     error  // nil: it is as planned
}

// check checks the assumptions of the plan and prints each result. Failures make
// the termination message.
func check(ctx context.Context, o options, p process) int {
	l, err := limits.FromEnv(p.lookup)
	if err != nil {
		return failUsage(o, p, fmt.Errorf("read the guard's limits: %w", err))
	}
	facts, err := readFacts(ctx, gpu.New(gpu.Options{Library: o.nvmlLibrary, Limit: checkTimeout}))
	findings := []finding{{"NVML", fmt.Sprintf("answers, driver %s", facts.Driver), err}}
	if err == nil {
		findings = append(findings, checkDriver(l, facts), checkCount(l, facts, p))
		findings = append(findings, checkMemory(l, facts)...)
	}
	if l.ExpectMPS {
		findings = append(findings, checkMPS(ctx, l, p))
	}
	if o.shimFolder != "" {
		findings = append(findings, finding{"shim", "is in " + o.shimFolder, shim.Write(o.shimFolder, o.execProgram)})
	}
	return report(findings, o, p)
}

const (
	// checkTimeout is how long the driver may take for its facts. Without persistence
	// mode it initialises the device first, for seconds where a node is busy.
	checkTimeout = 30 * time.Second
	checkTries   = 3
	checkPause   = time.Second
)

// readFacts reads the driver's facts, some times over: a check that fails makes a
// Job fail.
func readFacts(ctx context.Context, driver *gpu.Driver) (facts gpu.Facts, err error) {
	for try := range checkTries {
		if try > 0 && !ticks.Sleep(ctx, checkPause) {
			return facts, err
		}
		if facts, err = driver.Facts(ctx); err == nil {
			return facts, nil
		}
	}
	return facts, err
}

func checkDriver(l limits.Limits, f gpu.Facts) finding {
	found := finding{subject: "driver", detail: f.Driver + " as planned"}
	if l.MinDriver == "" {
		found.detail = f.Driver + ", none is planned for"
	}
	if l.MinDriver != "" && gpu.Older(f.Driver, l.MinDriver) {
		found.err = fmt.Errorf("the node has driver %s, and the plan needs %s or newer", f.Driver, l.MinDriver)
	}
	return found
}

func checkCount(l limits.Limits, f gpu.Facts, p process) finding {
	most := 0
	for _, c := range l.Containers {
		most = max(most, c.GPUs)
	}
	found := finding{subject: "devices", detail: fmt.Sprintf("%d visible, %d planned", len(f.Devices), most)}
	if len(f.Devices) < most {
		found.err = fmt.Errorf("%d devices are visible, and the plan gives %d to a container", len(f.Devices), most)
	}
	if n := max(len(f.Devices), assigned(p)); l.OneDevice && n > 1 {
		found.err = fmt.Errorf("%d devices were assigned, and the slice is to be of one: a granular pool needs nodes with one GPU", n)
	}
	return found
}

// assigned is how many devices the device plugin named to the container, whatever the runtime made of that. It
// names one for each replica that was requested.
func assigned(p process) int {
	value, _ := p.lookup("NVIDIA_VISIBLE_DEVICES")
	names := strings.Split(value, ",")
	slices.Sort(names)
	return len(slices.Compact(names))
}

func checkMemory(l limits.Limits, f gpu.Facts) []finding {
	var findings []finding
	for _, d := range f.Devices {
		found := finding{subject: "memory of " + d.ID, detail: guard.FormatBytes(d.TotalBytes)}
		switch {
		case d.TotalBytes == 0:
			found.detail = "the device does not report it"
		case l.MinDeviceBytes > 0 && d.TotalBytes < l.MinDeviceBytes:
			found.err = fmt.Errorf("%s has %s, and the plan needs at least %s",
				d.ID, guard.FormatBytes(d.TotalBytes), guard.FormatBytes(l.MinDeviceBytes))
		case l.MaxDeviceBytes > 0 && d.TotalBytes > l.MaxDeviceBytes:
			found.err = fmt.Errorf("%s has %s, and the plan is for at most %s",
				d.ID, guard.FormatBytes(d.TotalBytes), guard.FormatBytes(l.MaxDeviceBytes))
		}
		findings = append(findings, found)
	}
	return findings
}

// checkMPS makes sure that the daemon answers: a client without it runs as an
// ordinary process with the whole device, and gets no error.
func checkMPS(ctx context.Context, l limits.Limits, p process) finding {
	pipe := l.MPSPipeDirectory
	if injected, set := p.lookup("CUDA_MPS_PIPE_DIRECTORY"); set {
		pipe = injected // by the device plugin, which knows the directory
	}
	found := finding{subject: "MPS daemon", detail: "answers at " + pipe}
	if _, err := os.Stat(pipe); err != nil {
		found.err = fmt.Errorf("the MPS daemon's pipe directory %s is not there: a client would take the whole device", pipe)
		return found
	}
	err := mps.Control{Program: l.MPSControl, PipeDirectory: pipe}.Alive(ctx)
	if errors.Is(err, mps.ErrOutOfReach) {
		found.detail = pipe + " is there; whether the daemon lives is unknown without " + mps.Program
		return found
	}
	if err != nil {
		found.err = fmt.Errorf("the MPS daemon at %s does not answer, and a client would take the whole device: %w", pipe, err)
	}
	return found
}

// report prints every finding, and writes the failures to the termination message.
func report(findings []finding, o options, p process) int {
	var failures []string
	for _, f := range findings {
		if f.err != nil {
			failures = append(failures, f.err.Error())
			fmt.Fprintf(p.out, "FAIL  %s: %v\n", f.subject, f.err)
			continue
		}
		fmt.Fprintf(p.out, "ok    %s: %s\n", f.subject, f.detail)
	}
	if len(failures) == 0 {
		return exitOK
	}
	writeTerminationMessage(o, p, "gpuslice: this node cannot keep what the pod was promised: "+strings.Join(failures, "; "))
	return exitFailed
}

// failUsage reports why the command cannot begin, in log and termination message.
func failUsage(o options, p process, err error) int {
	fmt.Fprintf(p.err, "guard: %v\n", err)
	writeTerminationMessage(o, p, "gpuslice: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	return exitUsage
}

// writeTerminationMessage writes the container's termination message. The kubelet
// shows 4096 bytes of it.
func writeTerminationMessage(o options, p process, message string) {
	const maxMessage = 4096 - len("...")
	if err := os.WriteFile(o.terminationMessagePath, []byte(shorten.Text(message, maxMessage)), 0o644); err != nil {
		fmt.Fprintf(p.err, "guard: write the termination message: %v\n", err)
	}
}
