package main

import (
	"context"
	"fmt"

	"github.com/gpuslice/gpuslice/guard/proc"
)

// status prints the running guard's answer to this probe: the kubelet records the
// output of a probe that fails as an Event.
func status(_ context.Context, o options, p process) int {
	f, err := openStatusFile(o.terminationMessagePath)
	if err != nil {
		fmt.Fprintf(p.out, "guard: %v\n", err)
		return exitFailed
	}
	defer f.close()
	var a answer
	if err := f.awaitUpdate(func(s *probeStatus) { a = s.answer(o.probe, proc.SinceBoot()) }); err != nil {
		fmt.Fprintf(p.out, "guard: %v\n", err)
		return exitFailed
	}
	fmt.Fprintln(p.out, a.Text)
	if !a.OK {
		return exitFailed
	}
	return exitOK
}
