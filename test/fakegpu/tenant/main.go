package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	go func() {
		status, err := run(os.Args)
		if err != nil {
			fmt.Fprintln(os.Stderr, "tenant:", err)
			status = 2
		}
		os.Exit(status)
	}()
	endFirstThread()
}

// run returns the exit status.
func run(args []string) (int, error) {
	terms := make(chan os.Signal, 16)
	signal.Notify(terms, syscall.SIGTERM)
	words, left, space, err := titled(args)
	if err != nil {
		return 0, err
	}
	s, err := parse(words)
	if err != nil {
		return 0, err
	}
	s.device = ownDevice(s.device, os.Getenv("NVIDIA_VISIBLE_DEVICES"))
	first := mebibytes(0)
	if len(left) > 0 && len(s.steps) > 0 {
		first = s.steps[0].amount
	}
	title, err := newTitle(left, space, &s, first)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t := &tenant{script: s, title: title, name: args[0], out: os.Stdout}
	return t.live(ctx, terms)
}

// live plays and beats until the steps, the time or a signal end it.
func (t *tenant) live(ctx context.Context, terms <-chan os.Signal) (int, error) {
	type end struct {
		leave bool
		err   error
	}
	ended := make(chan end, 1)
	go t.beat(ctx)
	go func() {
		leave, err := t.play(ctx)
		ended <- end{leave, err}
	}()
	var late <-chan time.Time
	if t.script.exitAfter != 0 {
		late = time.After(t.script.exitAfter)
	}
	for {
		select {
		case e := <-ended:
			if e.leave || e.err != nil {
				return 0, e.err
			}
		case <-late:
			return 0, nil
		case <-terms:
			fmt.Fprintln(t.out, "term")
			if t.script.forkOnTerm != 0 {
				if err := t.fork(1, t.script.forkOnTerm); err != nil {
					return 0, err
				}
			}
			if !t.script.ignoreTerm {
				return 128 + int(syscall.SIGTERM), nil
			}
		}
	}
}
