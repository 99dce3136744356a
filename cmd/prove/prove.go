package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/cmd/prove/proof"
	"github.com/gpuslice/gpuslice/guard"
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
	report := proof.Report{Taken: time.Now().UTC().Truncate(time.Second),
		Driver: d.version, Device: d.facts.ID, TotalBytes: d.facts.TotalBytes, SliceBytes: int64(o.slice)}
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
			fmt.Fprintf(p.err, "%s: left out, since there is no MPS daemon to evade\n", w)
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

// target is the most memory that is held.
func (o options) target() int64 { return int64(o.slice + o.past) }

func (o options) announce(p process, d device) {
	fmt.Fprintf(p.err, "Goes up to %s past a slice of %s on %s, in %d ways (%s), for at most %s each. Frees all after each.\n",
		guard.FormatBytes(int64(o.past)), guard.FormatBytes(int64(o.slice)), describe(d), len(o.ways), o.ways.String(), o.watch)
}

func describe(d device) string {
	if d.missing != nil {
		return "a device that NVML does not report (" + d.missing.Error() + ")"
	}
	return fmt.Sprintf("%s (%s, driver %s)", d.facts.Name, d.facts.ID, d.version)
}

// agreed returns an error where others may be hurt and --yes is missing.
func (o options) agreed(ctx context.Context, d device) error {
	seen, err := d.read(ctx)
	if o.yes || d.contained(ctx, o) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w (who is on the device is unknown: %w)", errNeighbors, err)
	}
	if !idle(seen) {
		return fmt.Errorf("%w (%s of %s are used)", errNeighbors, guard.FormatBytes(seen.UsedBytes), guard.FormatBytes(seen.TotalBytes))
	}
	return nil
}

// contained reports whether the program cannot get past the device, an instance or a whole one that nobody else is on.
func (d device) contained(ctx context.Context, o options) bool {
	if d.missing != nil || d.facts.TotalBytes == 0 || d.facts.TotalBytes >= o.target() {
		return false
	}
	seen, err := d.read(ctx)
	return d.facts.Instance || err == nil && idle(seen)
}

// idle reports whether nobody is on the device.
func idle(seen guard.Device) bool { return seen.UsedBytes <= idleBytes && len(seen.Processes) == 0 }

// notEnoughFree returns why there is too little memory for the attempt on the device, or an empty text.
func (o options) notEnoughFree(ctx context.Context, d device) string {
	free := d.free(ctx)
	if d.contained(ctx, o) || free < 0 || free >= o.target()+spareBytes {
		return ""
	}
	return fmt.Sprintf("not tried: %s are free on the device, and %s are needed, so that others keep some",
		guard.FormatBytes(free), guard.FormatBytes(o.target()+spareBytes))
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

// Variables by which CUDA numbers devices. NVML heeds neither.
const (
	visibleVariable = "CUDA_VISIBLE_DEVICES"
	orderVariable   = "CUDA_DEVICE_ORDER"
)

// environment is the environment of a program of the attempt. Its one device is the one that NVML reads.
func (a *attempt) environment(own []string) (out []string) {
	drop := []string{orderVariable,
		map[proof.Way]string{proof.MPSUnset: pipeVariable, proof.MPSElsewhere: pipeVariable, proof.MPSLimit: limitVariable}[a.way]}
	out = []string{orderVariable + "=PCI_BUS_ID"}
	if a.device.missing == nil {
		drop, out = append(drop, visibleVariable), append(out, visibleVariable+"="+a.device.facts.ID)
	}
	for _, v := range own {
		if name, _, _ := strings.Cut(v, "="); !slices.Contains(drop, name) {
			out = append(out, v)
		}
	}
	switch a.way {
	case proof.MPSElsewhere:
		out = append(out, pipeVariable+"=/nonexistent/gpuslice")
	case proof.MPSLimit:
		out = append(out, limitVariable+"=GPU-ffffffff-ffff-ffff-ffff-ffffffffffff=1G")
	}
	return out
}
