package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// story shows two pods that share a GPU, one of which goes past its slice.
func story(ctx context.Context, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	dir, err := os.MkdirTemp("", "gpuslice-demo-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	p, err := buildPrograms(ctx, dir, stderr)
	if errors.Is(err, fakegpu.ErrNoCompiler) {
		fmt.Fprintf(stderr, "--> two pods that share a GPU are left out: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	w, err := storyWorld()
	if err != nil {
		return err
	}
	fmt.Fprint(stdout, "\n=== Two pods share a GPU; one goes past its slice\n\n")
	c := Clock{stdout, time.Now()}
	var both [2]*local
	for i, place := range []Place{Quiet(), Hog()} {
		if both[i], err = c.startOne(ctx, w, p, dir, place); err != nil {
			return err
		}
		defer both[i].end()
	}
	return c.hogEnds(ctx, both[0], both[1])
}

// startOne decides a pod, and starts the result.
func (c Clock) startOne(ctx context.Context, w *world, p programs, dir string, at Place) (*local, error) {
	text, err := files.ReadFile("node/" + at.Pod + ".yaml")
	if err != nil {
		return nil, err
	}
	pod := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &pod.Object); err != nil {
		return nil, err
	}
	answer, err := w.create(pod)
	if err != nil {
		return nil, err
	}
	if answer.pod == nil {
		return nil, fmt.Errorf("%w: pod %s is denied: %s", ErrUnexpected, at.Pod, answer.denied.Message())
	}
	planned, err := PlannedOf(answer.pod)
	if err != nil {
		return nil, err
	}
	c.Say("pod %s requests %s: gpuslice plans %s, held by %s", at.Pod, pod.GetLabels()[api.LabelMemory],
		planned.Strategy, tierList(planned.Containers[0].Tiers))
	started, err := startLocal(ctx, p, dir, answer.pod)
	if err != nil {
		return nil, err
	}
	c.Say("pod %s runs: process %s beside its guard", at.Pod, at.Container)
	return started, nil
}

// hogEnds follows the guard of the hog, and reports how its owner learns of the end and how the neighbor fared.
func (c Clock) hogEnds(ctx context.Context, neighbor, hog *local) error {
	defer context.AfterFunc(ctx, hog.end)()
	if err := c.FollowLog(hog.guardLog); err != nil {
		return err
	}
	end := <-hog.ended
	var exit *exec.ExitError
	if !errors.As(end, &exit) {
		return fmt.Errorf("%w: the hog ended as %v", ErrUnexpected, end)
	}
	c.Say("pod hog: its process ended: %s", exit)
	err := hog.probe(ctx, "--liveness", func(ok bool, said string) bool {
		if !ok {
			c.Say("its owner reads, as an Event of the pod: %s", said)
		}
		return !ok
	})
	if err != nil {
		return err
	}
	return c.ReportBeats(CountBeats(neighbor.printed.String()))
}
