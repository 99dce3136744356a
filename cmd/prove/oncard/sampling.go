package oncard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

const (
	sampleCount   = 100
	sampleLimit   = 5 * time.Second
	rateWindow    = time.Second
	rateWindows   = 5
	leastRatio    = 0.95
	fewContexts   = 8
	manyContexts  = 32
	contextToFill = 600 * mebibyte // room for each context
)

// sampling measures a reading of the device by the number of its processes, and what a guard costs.
func sampling(ctx context.Context, c *card) []check {
	var checks []check
	var all []*process
	defer func() {
		for _, p := range all {
			p.stop()
		}
	}()
	for _, n := range []int{1, fewContexts, manyContexts} {
		subject := fmt.Sprintf("reading of %d processes", n)
		err := c.requireFree(ctx, int64(n-len(all))*contextToFill)
		for err == nil && len(all) < n {
			var p *process
			if p, err = c.start(ctx, nil); err == nil {
				all = append(all, p)
			}
		}
		if err != nil {
			checks = append(checks, broken(subject, err))
			break
		}
		checks = append(checks, c.readingTime(ctx, subject))
	}
	for _, p := range all {
		p.stop()
	}
	all = nil
	return append(checks, c.withGuard(ctx, "guard beside a neighbor", nil, pod.cost),
		notRun("agent beside a neighbor", "an agent needs an API server; \"make bench-guard\" compares its CPU time with guards', on a simulated driver"))
}

func (c *card) readingTime(ctx context.Context, subject string) check {
	var times []time.Duration
	for over := time.Now().Add(sampleLimit); len(times) < sampleCount && time.Now().Before(over); {
		began := time.Now()
		if _, err := c.read(ctx); err != nil {
			return broken(subject, err)
		}
		times = append(times, time.Since(began))
	}
	p50, p99 := percentiles(times)
	most := limits.Default().FastInterval
	return verdict(subject, p99 < most, "%d readings: p50 %s, p99 %s; the shortest pause between two is %s",
		len(times), milliseconds(p50), milliseconds(p99), most)
}

// cost compares a neighbor's pace while the guard runs and while it is stopped by a signal, in turns, and measures the guard's CPU time.
func (p pod) cost(ctx context.Context, subject string) check {
	var with, without []float64
	var ran time.Duration
	for range rateWindows {
		before, err := cpuTime(p.guard.pid)
		if err != nil {
			return broken(subject, err)
		}
		rate, err := p.rate(ctx)
		if err != nil {
			return broken(subject, err)
		}
		after, err := cpuTime(p.guard.pid)
		if err != nil {
			return broken(subject, err)
		}
		with, ran = append(with, rate), ran+after-before
		if rate, err = p.rateWithoutGuard(ctx); err != nil {
			return broken(subject, err)
		}
		without = append(without, rate)
	}
	slices.Sort(with)
	slices.Sort(without)
	ratio := with[rateWindows/2] / without[rateWindows/2]
	return verdict(subject, ratio >= leastRatio, "the neighbor writes %s %.0f times a second with a guard that samples each %s: %.3f of its pace without; the guard takes %.2f %% of a core",
		"256Mi", with[rateWindows/2], limits.Default().FastInterval, ratio, 100*ran.Seconds()/(rateWindows*rateWindow).Seconds())
}

func (p pod) rateWithoutGuard(ctx context.Context) (float64, error) {
	if err := p.guard.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return 0, fmt.Errorf("stop the guard: %w", err)
	}
	rate, err := p.rate(ctx)
	if failed := p.guard.cmd.Process.Signal(syscall.SIGCONT); failed != nil && err == nil {
		err = fmt.Errorf("continue the guard: %w", failed)
	}
	return rate, err
}

// rate is how often in a second the neighbor writes to its memory.
func (p pod) rate(ctx context.Context) (float64, error) {
	began := time.Now()
	if err := p.neighbor.send(order{Do: "beat"}); err != nil {
		return 0, err
	}
	a, err := p.neighbor.worksOn(ctx)
	return float64(a.Beats) / time.Since(began).Seconds(), err
}

// cpuTime is the time that all threads of a process have run.
func cpuTime(pid int) (sum time.Duration, err error) {
	files, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/schedstat"))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("read the CPU time of process %d: no threads", pid)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread exited
		}
		ran, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		sum += time.Duration(ran)
	}
	return sum, nil
}
