package main

import (
	"context"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard/proc"
)

func TestListenSkipsTakenNames(t *testing.T) {
	t.Parallel()
	first, err := listen("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := listen("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	table, err := proc.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	s := &probeStatus{}
	s.observe(time.Now(), "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go serve(ctx, first, table, s)
	go serve(ctx, second, table, s)
	if a, err := ask("/proc", table, startupProbe); err != nil || !a.OK {
		t.Errorf("got %+v, %v", a, err)
	}
}
