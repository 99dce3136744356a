package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/gpuslice/gpuslice/test/bench/guard/world"
)

// plan is how much is measured.
type plan struct {
	rest         time.Duration
	terminations int
	steps        int
	pods         int
}

func main() {
	var p plan
	flag.DurationVar(&p.rest, "rest", 30*time.Second, "how long CPU and memory at rest are watched")
	flag.IntVar(&p.terminations, "terminations", 100, "how many tenants are terminated")
	flag.IntVar(&p.steps, "steps", 1_000_000, "how many random steps are taken")
	flag.IntVar(&p.pods, "pods", 100, "how many pods of a node are guarded by an agent, and by sidecars")
	flag.Parse()
	if err := bench(p); err != nil {
		fmt.Fprintf(os.Stderr, "bench-guard: %v\n", err)
		os.Exit(1)
	}
}

func bench(p plan) error {
	dir, err := os.MkdirTemp("", "bench-guard")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	k, err := build(context.Background(), dir)
	if err != nil {
		return err
	}
	fmt.Printf("binary size              %.1f MB (aim: under 12)\n", float64(k.size)/1e6)
	if err := k.rest(p.rest); err != nil {
		return err
	}
	if err := k.node(context.Background(), p.pods, p.rest); err != nil {
		return err
	}
	if err := k.latency(p.terminations); err != nil {
		return err
	}
	return randomSteps(p.steps)
}

// randomSteps counts false terminations over some seeds.
func randomSteps(steps int) error {
	const seeds = 10
	began := time.Now()
	var all, wrong int
	var why string
	for seed := range uint64(seeds) {
		got := world.New(seed).Run(steps / seeds)
		all, wrong = all+got.Terminated, wrong+got.False
		if why == "" {
			why = got.Why
		}
	}
	fmt.Printf("random steps             %d, %d terminations, %d false (aim: 0), in %.1f s\n", steps, all, wrong, time.Since(began).Seconds())
	if wrong > 0 {
		return fmt.Errorf("%d false terminations; %s", wrong, why)
	}
	return nil
}
