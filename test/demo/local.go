package demo

import (
	"context"
	"fmt"
	"io"
)

// Local shows gpuslice without Kubernetes: the guard of one of two pods terminates a process that goes past its slice, and sample
// pods are decided.
func Local(ctx context.Context, o Options, stdout, stderr io.Writer) error {
	pods, err := Samples(o.Pod)
	if err != nil {
		return err
	}
	if o.Pod == "" {
		if err := story(ctx, stdout, stderr); err != nil {
			return err
		}
	}
	unexpected, err := answers(o, pods, stdout)
	if err != nil {
		return err
	}
	if err := Unexpected(unexpected); err != nil {
		return err
	}
	GoOn(stdout)
	return nil
}

// GoOn prints the user's next steps.
func GoOn(stdout io.Writer) {
	fmt.Fprint(stdout, "\nGo on with:\n  make run POD=my.yaml     your own pods and workloads\n  make run CLUSTER=1       the same on a real API server, kubelet and device plugin\n  make run KEEP=1          and it stays up, with kubectl, helm and gpuslice\n"+
		"  make build               the command line: bin/gpuslice render -f my.yaml --policies test/demo/policies --nodes test/scenarios/nodes/l4-timeslicing-renamed.yaml -n research -o diff\n")
}
