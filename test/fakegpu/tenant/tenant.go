package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// beatEvery is how often the tenant shows that it lives, growEvery how often it grows.
const (
	beatEvery = 200 * time.Millisecond
	growEvery = 10 * time.Millisecond
)

// tenant is a running script.
type tenant struct {
	script script
	title  *title
	name   string // argv[0]
	held   atomic.Int64
	child  int // the crowd
	out    io.Writer
}

func (t *tenant) hold(amount mebibytes) {
	t.held.Store(int64(amount))
	t.title.hold(amount)
}

// play takes the steps. It returns true if the last one was to leave.
func (t *tenant) play(ctx context.Context) (leave bool, err error) {
	for i, next := range t.script.steps {
		if ctx.Err() != nil {
			return false, nil
		}
		switch next.do {
		case "hold":
			t.hold(next.amount)
		case "grow":
			t.grow(ctx, next)
		case "spike":
			before := mebibytes(t.held.Load())
			t.hold(next.amount)
			rest(ctx, next.length)
			t.hold(before)
		case "wait":
			rest(ctx, next.length)
		case "fork":
			err = t.fork(next.count, next.amount)
		case "say":
			fmt.Fprintln(t.out, next.text)
		case "occupy":
			err = occupy(next.count)
		case "fifo":
			err = replaceByFIFO(next.text)
		case "connect":
			connect(next.text)
		case "chroot":
			err = changeRoot(next.text)
		case "end-first-thread":
			close(firstThread)
		case "threads":
			threads(next.count)
		case "crowd":
			err = t.crowd(next.count)
		case "end-threads":
			err = t.endThreads()
		case "reexec":
			err = t.again(i + 1)
		case "leave":
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func (t *tenant) grow(ctx context.Context, s step) {
	tick := time.NewTicker(growEvery)
	defer tick.Stop()
	for start := time.Now(); time.Since(start) < s.length && ctx.Err() == nil; {
		part := float64(time.Since(start)) / float64(s.length)
		t.hold(s.amount + mebibytes(part*float64(s.to-s.amount)))
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	t.hold(s.to)
}

// fork starts processes that hold so much each. They get none of this one's steps.
func (t *tenant) fork(count int, amount mebibytes) error {
	child := t.script
	child.steps = []step{{do: "hold", amount: amount}}
	child.forkOnTerm = 0
	for range count {
		cmd := exec.Command(image(), child.arguments(0)...)
		cmd.Args[0], cmd.Stdout, cmd.Stderr = t.name, os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("fork: %w", err)
		}
		go cmd.Wait() // no zombies; how it ends is nobody's concern
	}
	return nil
}

// again replaces this process and goes on with a later step. A handler does not outlive the
// image, but being ignored does: a signal in between must not end who ignores it.
func (t *tenant) again(from int) error {
	if t.script.ignoreTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	held := mebibytes(t.held.Load())
	later := t.script
	later.steps = append([]step{{do: "hold", amount: held}}, t.script.steps[from:]...)
	before, after := later.word()
	return restart(t.name, fmt.Sprintf("%s%d%s", before, int(held), after), later.arguments(0))
}

// beat prints the lines which show that the tenant was not disturbed.
func (t *tenant) beat(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	last, late := time.Now(), time.Duration(0)
	for n := 1; ; n++ {
		fmt.Fprintf(t.out, "beat %d pid=%d held=%d late=%d\n", n, os.Getpid(), t.held.Load(), late.Milliseconds())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		late, last = max(late, time.Since(last)-beatEvery), time.Now()
	}
}

// ownDevice is the device that the container was given, as the library knows it.
func ownDevice(said, visible string) string {
	first, _, _ := strings.Cut(visible, ",")
	switch {
	case said == "" && (strings.HasPrefix(first, "GPU-") || strings.HasPrefix(first, "MIG-")):
		return first
	case said == "":
		said = "0"
	case strings.Contains(said, "-") || strings.HasPrefix(said, "gpu"):
		return said
	}
	return "gpu" + said
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
