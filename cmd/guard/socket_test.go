package main

import (
	"context"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard/proc"
)

func TestASocketNameThatIsTakenIsPassedOver(t *testing.T) {
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
	b := &board{}
	b.saw(time.Now(), "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go serve(ctx, first, table, b)
	go serve(ctx, second, table, b)
	if a, err := ask("/proc", table, probeStartup); err != nil || !a.OK {
		t.Errorf("got %+v, %v", a, err)
	}
}
