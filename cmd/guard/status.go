package main

import (
	"context"
	"fmt"

	"github.com/gpuslice/gpuslice/guard/proc"
)

// status asks the running guard and prints its answer: the kubelet records the
// output of a probe that fails as an Event.
func status(_ context.Context, o options, p process) int {
	table, err := proc.Open(o.procDir)
	if err != nil {
		fmt.Fprintf(p.out, "guard: %v\n", err)
		return exitFailed
	}
	a, err := ask(o.procDir, table, o.probe)
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
