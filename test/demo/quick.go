package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

// quick shows gpuslice's own processes without Kubernetes: the webhook answers reviews of pods, and the guard of one of two pods
// terminates a process that goes past its slice.
func quick(ctx context.Context, o options, stdout, stderr io.Writer) error {
	pods, err := samples(o.pod)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gpuslice-demo-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	p, err := buildPrograms(ctx, dir, stderr)
	if err != nil {
		return err
	}
	if o.pod == "" {
		if err := story(ctx, p, dir, stdout, stderr); err != nil {
			return err
		}
	}
	unexpected, err := answers(ctx, o, p, dir, pods, stdout)
	if err != nil {
		return err
	}
	if err := unexpectedError(unexpected); err != nil {
		return err
	}
	goOn(stdout)
	return nil
}
