package main

import (
	"context"
	"fmt"
)

// status prints what the running guard wrote for this probe: the kubelet records
// the output of a probe that fails as an Event.
func status(_ context.Context, o options, p process) int {
	f, err := openStatusFile(o.terminationMessagePath)
	if err != nil {
		fmt.Fprintf(p.out, "guard: %v\n", err)
		return exitFailed
	}
	defer f.close()
	var a answer
	if err := f.awaitUpdate(func(s *probeStatus) { a = s.answer(o.probe, sinceBoot()) }); err != nil {
		fmt.Fprintf(p.out, "guard: %v\n", err)
		return exitFailed
	}
	fmt.Fprintln(p.out, a.Text)
	if !a.OK {
		return exitFailed
	}
	return exitOK
}
