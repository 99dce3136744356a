package oncard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
	"github.com/gpuslice/gpuslice/guard/limits"
)

const (
	hog      = "hog"
	neighbor = "neighbor"
	// hogAt is what a hog holds within its slice, hogSlice its slice beside its context, hogPast what it takes more.
	hogAt, hogSlice, hogPast = 512 * mebibyte, gibibyte, gibibyte
	// neighborHolds is what the neighbor works on.
	neighborHolds = 256 * mebibyte
	// mostReaction is how long a process may live past its slice, beside the grace period.
	mostReaction = 5 * time.Second
	beatPeriod   = 20 * time.Millisecond
	listedAgain  = 100 * time.Millisecond
	// terminationsLimit bounds a series on a card whose contexts take long.
	terminationsLimit = 50 * time.Second
)

// pod is a guard with a container that goes past its slice, and a neighbor.
type pod struct {
	*card
	layout   layout
	guard    *process
	neighbor *process
}

// guarded has the guard terminate one process after the other, beside a neighbor.
func guarded(ctx context.Context, c *card) []check {
	if err := c.requireFree(ctx, 4*gibibyte); err != nil {
		return []check{broken("terminations", err)}
	}
	return []check{
		c.withGuard(ctx, "terminations", nil, pod.terminations),
		c.withGuard(ctx, "a grace period of 2s", func(l *limits.Limits) { l.Grace = 2 * time.Second }, pod.grace),
		c.withGuard(ctx, "dry run", func(l *limits.Limits) { l.DryRun = true }, pod.dryRun),
	}
}

// withGuard measures something in a pod whose limits are changed.
func (c *card) withGuard(ctx context.Context, subject string, change func(*limits.Limits), measure func(pod, context.Context, string) check) check {
	p := pod{card: c}
	defer p.stop()
	if err := p.open(ctx, change); err != nil {
		return broken(subject, err)
	}
	return measure(p, ctx, subject)
}

func (p *pod) open(ctx context.Context, change func(*limits.Limits)) (err error) {
	program, err := filepath.Abs(filepath.Join(p.bin, "gpuslice-guard"))
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		return fmt.Errorf("find the guard: %w", err)
	}
	if gpu.Older(p.version, gpu.FirstInPod) {
		return fmt.Errorf("driver %s, and a guard in a pod needs %s", p.version, gpu.FirstInPod)
	}
	if err := p.alone(ctx); err != nil {
		return err
	}
	if p.layout, err = newLayout(); err != nil {
		return err
	}
	if p.neighbor, err = p.start(ctx, nil); err != nil {
		return err
	}
	if err := p.layout.add(p.neighbor.pid, neighbor); err != nil {
		return err
	}
	if _, err := p.neighbor.do(ctx, order{Do: "allocate", Bytes: neighborHolds}); err != nil {
		return err
	}
	found, _, err := p.listed(ctx, p.neighbor.pid)
	if err != nil {
		return err
	}
	if !found.Known {
		return errors.New("NVML has no amount for a process")
	}
	return p.startGuard(ctx, program, found.UsedBytes-neighborHolds+hogSlice, change)
}

// alone waits until the device has no processes: NVML may list processes of the row before for a moment.
func (c *card) alone(ctx context.Context) error {
	for over := time.Now().Add(endLimit); ; {
		seen, err := c.read(ctx)
		if err != nil || len(seen.Processes) == 0 {
			return err
		}
		if time.Now().After(over) || ctx.Err() != nil {
			return errors.Join(ctx.Err(),
				fmt.Errorf("%d other processes are on the device, and a guard acts on none that lists processes of others", len(seen.Processes)))
		}
		time.Sleep(listedAgain)
	}
}

// startGuard starts a guard that terminates at once whoever is past the slice.
func (p *pod) startGuard(ctx context.Context, program string, slice int64, change func(*limits.Limits)) error {
	l := limits.Default()
	for _, name := range []string{hog, neighbor} {
		l.Containers = append(l.Containers, limits.Container{Name: name, SliceBytes: slice, LimitBytes: slice, GPUs: 1})
	}
	l.Grace, l.TermGrace, l.Settle, l.MaxTerminations, l.TerminationsWindow = 0, 0, 0, 1000, time.Second
	l.Interval = l.FastInterval // as near the limit
	if change != nil {
		change(&l)
	}
	status := filepath.Join(string(p.layout), "termination-log")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "run", "--nvml-library", p.nvmlLibrary, "--proc-dir", string(p.layout),
		"--termination-message-path", status)
	cmd.Env = os.Environ()
	for _, v := range l.Env() {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	var err error
	if p.guard, err = p.launch(cmd); err != nil {
		return err
	}
	return p.layout.add(p.guard.pid, limits.GuardContainer)
}

func (p *pod) stop() {
	for _, one := range []*process{p.neighbor, p.guard} {
		if one != nil {
			_ = one.cmd.Process.Kill()
			one.stop()
		}
	}
	if p.layout != "" {
		_ = os.RemoveAll(string(p.layout))
	}
}

// cross starts a hog within its slice, and returns when it has gone past it.
func (p pod) cross(ctx context.Context) (h *process, at time.Time, err error) {
	if h, err = p.start(ctx, nil); err != nil {
		return h, at, err
	}
	if err := p.layout.add(h.pid, hog); err != nil {
		return h, at, err
	}
	if _, err := h.do(ctx, order{Do: "allocate", Bytes: hogAt}); err != nil {
		return h, at, err
	}
	// At a moment that the guard's samples know nothing of.
	time.Sleep(rand.N(limits.Default().FastInterval))
	if !h.lives() {
		return h, at, errors.New("a process was terminated before it went past its slice")
	}
	_, err = h.do(ctx, order{Do: "allocate", Bytes: hogPast})
	if at = time.Now(); !h.lives() {
		err = nil // the guard was faster than the answer
	}
	return h, at, err
}

// await waits for a hog's end, and returns how long after the crossing that was, or whether it never came.
func (p pod) await(ctx context.Context, h *process, at time.Time, limit time.Duration) (took time.Duration, terminated bool) {
	select {
	case <-h.ended:
		signal := h.signaled()
		return max(h.endedAt.Sub(at), 0), signal == syscall.SIGKILL || signal == syscall.SIGTERM
	case <-time.After(limit):
	case <-ctx.Done():
	}
	return 0, false
}

func (p pod) terminations(ctx context.Context, subject string) check {
	if err := p.neighbor.send(order{Do: "beat", PeriodMicros: beatPeriod.Microseconds()}); err != nil {
		return broken(subject, err)
	}
	var times []time.Duration
	for over := time.Now().Add(terminationsLimit); len(times) < p.card.terminations && time.Now().Before(over); {
		h, at, err := p.cross(ctx)
		if err != nil {
			return broken(subject, err)
		}
		took, terminated := p.await(ctx, h, at, mostReaction)
		if ctx.Err() != nil {
			return broken(subject, ctx.Err())
		}
		if !terminated {
			h.stop()
			return verdict(subject, false, "after %d terminations a process lived past its slice for %s", len(times), mostReaction)
		}
		times = append(times, took)
	}
	beats, err := p.neighbor.do(ctx, order{Do: "stop"})
	if err != nil {
		return verdict(subject, false, "the neighbor failed: %s", oneLine(err.Error()))
	}
	p50, p99 := percentiles(times)
	return verdict(subject, beats.Beats > 0, "%d from crossing to gone: p50 %s, p99 %s; the neighbor's %d heartbeats at most %s apart, without an error",
		len(times), milliseconds(p50), milliseconds(p99), beats.Beats, milliseconds(time.Duration(beats.LongestMicros)*time.Microsecond))
}

func (p pod) grace(ctx context.Context, subject string) check {
	const period = 2 * time.Second
	h, at, err := p.cross(ctx)
	if err != nil {
		return broken(subject, err)
	}
	took, terminated := p.await(ctx, h, at, period+mostReaction)
	if !terminated {
		return verdict(subject, false, "the process lived for %s", period+mostReaction)
	}
	return verdict(subject, took >= period && p.neighbor.lives(), "terminated after %s", milliseconds(took))
}

func (p pod) dryRun(ctx context.Context, subject string) check {
	h, _, err := p.cross(ctx)
	if err != nil {
		return broken(subject, err)
	}
	defer h.stop()
	ctx, cancel := context.WithTimeout(ctx, mostReaction)
	defer cancel()
	for {
		text, err := p.guard.line(ctx)
		if err != nil {
			return verdict(subject, false, "the guard reports no decision: %s", oneLine(err.Error()))
		}
		if strings.Contains(text, fmt.Sprintf(`"pid":%d,`, h.pid)) && strings.Contains(text, `"result":"`+string(guard.DryRun)+`"`) {
			return verdict(subject, h.lives() && p.neighbor.lives(), "the decision is in the log, and the process lives")
		}
	}
}

// percentiles returns the 50th and the 99th.
func percentiles(of []time.Duration) (p50, p99 time.Duration) {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2], sorted[len(sorted)*99/100]
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
