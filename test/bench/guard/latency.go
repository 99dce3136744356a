package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// latency measures from crossing the slice to the process gone, with no grace,
// for tenants that were near the limit before. SIGKILL alone, so that the
// tenant's own way of stopping is not in it.
func (k *kit) latency(n int) error {
	const lanes = 2
	var (
		fast  = limits.Default().FastInterval
		wg    sync.WaitGroup
		mu    sync.Mutex
		took  []time.Duration
		fails []error
	)
	for range lanes {
		wg.Go(func() {
			ds, err := k.lane(n / lanes)
			mu.Lock()
			defer mu.Unlock()
			took, fails = append(took, ds...), append(fails, err)
		})
	}
	wg.Wait()
	if err := errors.Join(fails...); err != nil {
		return err
	}
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	fmt.Printf("crossing to gone         p50 %s, p99 %s, most %s of %d (aim: p99 under %s, 1.5 fast intervals)\n",
		p50.Round(time.Millisecond), p99.Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), len(took), fast*3/2)
	return nil
}

// lane terminates tenants one after the other in one pod.
func (k *kit) lane(n int) ([]time.Duration, error) {
	g, err := k.start(func(l *limits.Limits) {
		l.Grace, l.TermGrace, l.Settle, l.MaxTerminations, l.TerminationsWindow = 0, 0, 0, 1000, time.Second
	}, io.Discard)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	var took []time.Duration
	for range n {
		d, err := g.terminateOne()
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	return took, nil
}

// terminateOne lets a tenant cross its slice at a moment that the guard's samples know
// nothing of. It uses 7.8 GiB of 8 for two intervals before, so that it is
// sampled fast.
func (g *guarded) terminateOne() (time.Duration, error) {
	before := 4*time.Second + rand.N(500*time.Millisecond)
	tenant, out, err := g.run(fmt.Sprintf("hold 7987MiB wait %s hold 9GiB say crossed", before))
	if err != nil {
		return 0, err
	}
	var crossed time.Time
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "crossed") {
			crossed = time.Now()
		}
	}
	_ = tenant.Wait() // terminated by a signal
	if crossed.IsZero() {
		return 0, errors.New("a tenant was terminated before it crossed its slice")
	}
	return time.Since(crossed), nil
}
