package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/prove/proof"
	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
)

// device is the tried device as NVML reports it.
type device struct {
	driver  *gpu.Driver
	version string
	cgroup  string
	facts   gpu.Device
	missing error // why NVML reports nothing
}

// openDevice reads by NVML. Whether PIDs are right is found out, and not concluded from the driver's version.
func openDevice(ctx context.Context, o options) device {
	d := device{driver: gpu.New(gpu.Options{Library: o.nvmlLibrary, NodePIDs: true}), cgroup: o.cgroup}
	facts, err := d.driver.Facts(ctx)
	d.version, d.missing = facts.Driver, err
	switch {
	case err != nil:
	case o.device >= len(facts.Devices):
		d.missing = fmt.Errorf("there is no device %d: NVML shows %d", o.device, len(facts.Devices))
	default:
		d.facts = facts.Devices[o.device]
	}
	return d
}

// read lists the device's processes again.
func (d device) read(ctx context.Context) (guard.Device, error) {
	if d.missing != nil {
		return guard.Device{}, d.missing
	}
	all, err := d.driver.Read(ctx, 0)
	if err != nil {
		return guard.Device{}, err
	}
	for _, one := range all {
		if one.ID == d.facts.ID {
			return one, nil
		}
	}
	return guard.Device{}, errors.New("NVML no longer shows the device " + d.facts.ID)
}

// free is the free memory of the device; negative: unknown.
func (d device) free(ctx context.Context) int64 {
	seen, err := d.read(ctx)
	if err != nil || seen.TotalBytes == 0 {
		return -1
	}
	return max(seen.TotalBytes-seen.UsedBytes, 0)
}

// limit is the driver's own for the container; 0: none.
func (d device) limit(ctx context.Context) int64 {
	if d.missing != nil {
		return 0
	}
	_, limit, ok := d.driver.Charge(ctx, d.facts.ID, d.cgroup)
	if !ok {
		return 0
	}
	return limit
}

// compare compares NVML's answer about a process with its allocations. contextBytes is its other memory.
func (d device) compare(ctx context.Context, pid int, held int64) (r proof.Readings, contextBytes int64) {
	seen, err := d.read(ctx)
	if err == nil && seen.Fault != "" {
		err = errors.New(seen.Fault)
	}
	if err != nil {
		return proof.Readings{PIDs: proof.Missing, Amounts: proof.Missing, Detail: err.Error()}, 0
	}
	r = compare(seen.Processes, pid, held, func(pid int) bool {
		_, err := os.Stat("/proc/" + strconv.Itoa(pid))
		return err == nil
	})
	for _, p := range seen.Processes {
		if p.PID == pid && r.Amounts == proof.Right {
			contextBytes = p.UsedBytes - held
		}
	}
	return r, contextBytes
}

// mostContext is the most that a process may have on the device besides its allocations.
const mostContext = 2 << 30

func compare(listed []guard.Process, pid int, held int64, alive func(int) bool) proof.Readings {
	r := proof.Readings{PIDs: proof.Missing, Amounts: proof.Missing}
	var unknown []string
	for _, p := range listed {
		switch {
		case p.PID == pid:
			r.PIDs = proof.Right
			r.Amounts, r.Detail = compareAmount(p, held)
		case !alive(p.PID):
			unknown = append(unknown, strconv.Itoa(p.PID))
		}
	}
	switch {
	case r.PIDs == proof.Right:
	case len(unknown) > 0:
		r.PIDs, r.Detail = proof.Wrong, fmt.Sprintf("NVML lists PIDs that are not here (%s), and not PID %d", strings.Join(unknown, ", "), pid)
	default:
		r.Detail = fmt.Sprintf("NVML does not list PID %d, which holds %s", pid, guard.FormatBytes(held))
	}
	return r
}

func compareAmount(p guard.Process, held int64) (proof.Reading, string) {
	switch {
	case !p.Known:
		return proof.Missing, fmt.Sprintf("NVML has no amount for PID %d, which holds %s", p.PID, guard.FormatBytes(held))
	case p.UsedBytes < held || p.UsedBytes > held+mostContext:
		return proof.Wrong, fmt.Sprintf("NVML has %s for PID %d, which holds %s", guard.FormatBytes(p.UsedBytes), p.PID, guard.FormatBytes(held))
	}
	return proof.Right, ""
}
