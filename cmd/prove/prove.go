package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/proof"
)

// errNeighbors is returned where others may have memory of the device and nobody agreed to that.
var errNeighbors = errors.New("an allocation of others on the device may fail while this program is past its slice; --yes goes on")

const (
	// spareBytes stay free on the device for others while the program is past its slice.
	spareBytes = 512 << 20
	// idleBytes are used of a device on which nobody is.
	idleBytes = 1 << 30
)

// prove tries every way, one after the other.
func prove(ctx context.Context, o options, p process) (proof.Report, error) {
	d := openDevice(ctx, o)
	report := proof.Report{Taken: time.Now().UTC().Truncate(time.Second), Driver: d.version, Device: d.facts.ID, TotalBytes: d.facts.TotalBytes, SliceBytes: int64(o.slice)}
	o.announce(p, d)
	if err := o.agreed(ctx, d); err != nil {
		return report, err
	}
	readings, contextBytes, err := o.readings(ctx, d)
	if err != nil {
		return report, err
	}
	report.Readings = &readings
	for _, w := range o.ways {
		if w.EvadesMPS() && !servedByMPS(p.lookup) {
			continue
		}
		fmt.Fprintf(p.err, "%s: up to %s\n", w, guard.FormatBytes(o.target()))
		report.Attempts = append(report.Attempts, o.try(ctx, d, w, contextBytes))
		if ctx.Err() != nil {
			return report, fmt.Errorf("stopped: %w", ctx.Err())
		}
	}
	return report, nil
}

// target is what is held at the most.
func (o options) target() int64 { return int64(o.slice + o.past) }

func (o options) announce(p process, d device) {
	fmt.Fprintf(p.err, "Goes up to %s past a slice of %s on %s, in %d ways (%s), for at most %s each. Frees all after each.\n",
		guard.FormatBytes(int64(o.past)), guard.FormatBytes(int64(o.slice)), describe(d), len(o.ways), o.ways.String(), o.watch)
}

func describe(d device) string {
	if d.missing != nil {
		return "a device of which NVML tells nothing (" + d.missing.Error() + ")"
	}
	return fmt.Sprintf("%s (%s, driver %s)", d.facts.Name, d.facts.ID, d.version)
}

// agreed returns an error where others may be hurt and --yes is missing.
func (o options) agreed(ctx context.Context, d device) error {
	seen, err := d.read(ctx)
	if o.yes || d.contained(o) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w (who is on the device is unknown: %w)", errNeighbors, err)
	}
	if seen.UsedBytes > idleBytes || len(seen.Processes) > 0 {
		return fmt.Errorf("%w (%s of %s are used)", errNeighbors, guard.FormatBytes(seen.UsedBytes), guard.FormatBytes(seen.TotalBytes))
	}
	return nil
}

// contained reports whether nobody else can be on the device, which is an instance that the program cannot get past.
func (d device) contained(o options) bool {
	return d.missing == nil && d.facts.Instance && d.facts.TotalBytes < o.target()
}

// room returns why there is too little room for the attempt on the device, or an empty text.
func (o options) room(ctx context.Context, d device) string {
	free := d.free(ctx)
	if d.contained(o) || free < 0 || free >= o.target()+spareBytes {
		return ""
	}
	return fmt.Sprintf("not tried: %s are free on the device, and %s are needed, so that others keep some", guard.FormatBytes(free), guard.FormatBytes(o.target()+spareBytes))
}

// servedByMPS reports whether the process would find an MPS daemon.
func servedByMPS(lookup func(string) (string, bool)) bool {
	if folder, ok := lookup(pipeVariable); ok && folder != "" {
		return true
	}
	for _, folder := range []string{"/tmp/nvidia-mps", "/run/nvidia-mps"} {
		if _, err := os.Stat(filepath.Join(folder, "control")); err == nil {
			return true
		}
	}
	return false
}

// Variables that lead a process to its MPS daemon, and limit it.
const (
	pipeVariable  = "CUDA_MPS_PIPE_DIRECTORY"
	limitVariable = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
)

// environment is that of a program that goes the way.
func environment(own []string, w proof.Way) (out []string) {
	drop := map[proof.Way]string{proof.MPSUnset: pipeVariable, proof.MPSElsewhere: pipeVariable, proof.MPSLimit: limitVariable}[w]
	for _, v := range own {
		if name, _, _ := strings.Cut(v, "="); name != drop && name != "CUDA_DEVICE_ORDER" {
			out = append(out, v)
		}
	}
	out = append(out, "CUDA_DEVICE_ORDER=PCI_BUS_ID")
	switch w {
	case proof.MPSElsewhere:
		out = append(out, pipeVariable+"=/nonexistent/gpuslice")
	case proof.MPSLimit:
		out = append(out, limitVariable+"=GPU-ffffffff-ffff-ffff-ffff-ffffffffffff=1G")
	}
	return out
}
