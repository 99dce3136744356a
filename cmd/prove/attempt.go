package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/cmd/prove/cuda"
	"github.com/gpuslice/gpuslice/cmd/prove/proof"
)

const (
	processCount = 4
	pieceCount   = 8
	smallCount   = 1024
	smallest     = 1 << 20
	// fillTime is how long a program may take to pass its slice: the first context of a device may take seconds.
	fillTime = 2 * time.Minute
	// endTime is how long a program may take to free all.
	endTime = 10 * time.Second
)

// attempt is one way that is being tried.
type attempt struct {
	options  options
	device   device
	context  int64 // a process's memory on the device before it allocates
	opened   bool  // there is a context
	way      proof.Way
	commands []*exec.Cmd
	pids     []int
	stop     []func() error
	events   chan event
	held     []int64
	seen     proof.Observed
}

// try goes one way past the slice.
func (o options) try(ctx context.Context, d device, w proof.Way, contextBytes int64) proof.Attempt {
	if why := o.notEnoughFree(ctx, d); why != "" {
		return proof.Attempt{Way: w, Detail: why}
	}
	killed, before := o.kernelKills()
	a := &attempt{options: o, device: d, way: w, context: contextBytes}
	a.seen = proof.Observed{SliceBytes: int64(o.slice), TargetBytes: o.target(),
		FreeBytes: -1, TotalBytes: d.facts.TotalBytes, Watched: o.watch}
	defer a.end(endTime)
	if err := a.start(o.orders(w, o.target())); err != nil {
		return proof.Attempt{Way: w, Detail: err.Error()}
	}
	a.watch(ctx)
	now, after := o.kernelKills()
	a.seen.OutOfHostMemory, a.seen.KillsUnknown = now > killed, !before || !after
	return a.seen.Attempt(w)
}

// watch follows the programs until the holder is clear.
func (a *attempt) watch(ctx context.Context) {
	over := time.NewTimer(fillTime)
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			a.seen.Failure = "stopped"
			return
		case <-over.C:
			return
		case e := <-a.events:
			before := a.seen.Passed
			if a.take(ctx, e) {
				return
			}
			if before.IsZero() && !a.seen.Passed.IsZero() {
				over.Reset(a.options.watch)
			}
		}
	}
}

// take notes a program's event, and reports whether the attempt is over.
func (a *attempt) take(ctx context.Context, e event) bool {
	switch {
	case e.ended != nil:
		a.seen.Ended = e.at
		status, _ := e.ended.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			a.seen.Signal = int(status.Signal())
		} else {
			a.seen.Failure = fmt.Sprintf("the program ended by itself, with %s", e.ended)
		}
		return true
	case e.said.Failure != "":
		a.stopped(ctx, e.said, e.at)
		return true
	case e.said.Opened:
		a.opened = true
	default:
		a.holds(e)
	}
	return false
}

func (a *attempt) holds(e event) {
	a.held[e.index] = e.said.Held
	sum := int64(0)
	for _, n := range a.held {
		sum += n
	}
	a.seen.ReachedBytes = max(a.seen.ReachedBytes, sum)
	if sum+a.context*int64(len(a.held)) > a.seen.SliceBytes && a.seen.Passed.IsZero() {
		a.seen.Passed = e.at
	}
}

// stopped notes an error of the driver, while the programs still hold their memory.
func (a *attempt) stopped(ctx context.Context, s said, at time.Time) {
	switch {
	case s.Code == cuda.OutOfMemory && !a.opened:
		a.seen.Failure = s.Failure // there is not even a context
	case s.Code == cuda.OutOfMemory:
		a.seen.OutOfMemory, a.seen.NeedBytes = true, a.options.target()/pieceCount
		a.seen.LimitBytes, a.seen.FreeBytes = a.device.limit(ctx), a.device.free(ctx)
		a.seen.Client = a.client(ctx)
	case s.Code == cuda.ClientTerminated:
		a.seen.Terminated, a.seen.Ended = true, at
	case s.Code == cuda.DeviceUnavailable:
		a.seen.Unavailable, a.seen.Failure = true, s.Failure
	default:
		a.seen.Failure = s.Failure
	}
}

// client reports whether NVML lists one of the programs as a client of an MPS daemon.
func (a *attempt) client(ctx context.Context) bool {
	seen, err := a.device.read(ctx)
	if err != nil {
		return false
	}
	for _, p := range seen.Processes {
		for _, pid := range a.pids {
			if p.PID == pid && p.MPS {
				return true
			}
		}
	}
	return false
}

// readings compares NVML's answers with a program that holds half of the slice. contextBytes is the program's other
// memory.
func (o options) readings(ctx context.Context, d device) (r proof.Readings, contextBytes int64, err error) {
	a := &attempt{options: o, device: d, way: proof.Alloc, seen: proof.Observed{SliceBytes: int64(o.slice)}}
	defer a.end(endTime)
	half := int64(o.slice) / 2
	if err := a.start(o.orders(proof.Alloc, half)); err != nil {
		return r, 0, err
	}
	over := time.After(fillTime)
	for a.seen.ReachedBytes < half {
		select {
		case <-ctx.Done():
			return r, 0, fmt.Errorf("stopped: %w", ctx.Err())
		case <-over:
			return r, 0, errors.New("half of the slice could not be allocated in time")
		case e := <-a.events:
			if a.take(ctx, e) {
				return r, 0, fmt.Errorf("half of the slice cannot be allocated: %s", a.failure(e))
			}
		}
	}
	r, contextBytes = d.compare(ctx, a.pids[0], half)
	return r, contextBytes, nil
}

func (a *attempt) failure(e event) string {
	if e.said.Failure != "" {
		return e.said.Failure
	}
	return strings.TrimSpace(fmt.Sprint(a.seen.Failure, " ", e.ended))
}

// kernelKills is how often the kernel killed a process of the container for want of host memory; false: unknown.
func (o options) kernelKills() (n int, known bool) {
	for _, file := range []string{"memory.events", "memory/memory.oom_control"} { // cgroup v2, v1
		text, err := os.ReadFile(filepath.Join(o.cgroup, file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if _, err := fmt.Sscanf(line, "oom_kill %d", &n); err == nil {
				return n, true
			}
		}
	}
	return 0, false
}
