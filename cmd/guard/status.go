package main

import (
	"context"
	"fmt"

	"github.com/gpuslice/gpuslice/guard/proc"
)

// status asks the running guard, and says what it answers on stdout: the kubelet
// writes the output of a probe that fails as an Event.
func status(_ context.Context, o options, p process) int {
	table, err := proc.Open(o.proc)
	if err != nil {
		fmt.Fprintf(p.out, "guard: %v\n", err)
		return exitFailed
	}
	a, err := ask(o.proc, table, o.probe)
	if err != nil {
		fmt.Fprintf(p.out, "guard: %v\n", err)
		return exitFailed
	}
	fmt.Fprintln(p.out, a.Text)
	if !a.OK {
		return exitFailed
	}
	return exitOK
}
