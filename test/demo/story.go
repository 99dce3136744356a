package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// story shows two pods that share a GPU, one of which goes past its slice.
func story(ctx context.Context, p programs, dir string, stdout, stderr io.Writer) error {
	if p.guard == "" {
		fmt.Fprintf(stderr, "--> two pods that share a GPU are left out: %v\n", fakegpu.ErrNoCompiler)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	w, err := storyWorld()
	if err != nil {
		return err
	}
	a, err := ask(ctx, p.webhook, dir, w)
	if err != nil {
		return err
	}
	defer a.stop()
	fmt.Fprint(stdout, "\n=== Two pods share a GPU; one goes past its slice\n\n")
	c := clock{stdout, time.Now()}
	var both [2]*local
	for i, place := range []place{quiet(), hog()} {
		if both[i], err = c.startOne(ctx, a, p, dir, place); err != nil {
			return err
		}
		defer both[i].end()
	}
	return c.hogEnds(ctx, both[0], both[1])
}

// startOne has the webhook review a pod, and starts the result.
func (c clock) startOne(ctx context.Context, a *asked, p programs, dir string, at place) (*local, error) {
	text, err := files.ReadFile("node/" + at.pod + ".yaml")
	if err != nil {
		return nil, err
	}
	pod := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &pod.Object); err != nil {
		return nil, err
	}
	answer, err := a.Create(ctx, pod)
	if err != nil {
		return nil, err
	}
	if answer.Denied != nil {
		return nil, fmt.Errorf("%w: pod %s is denied: %s", errUnexpected, at.pod, answer.Denied.Message)
	}
	planned, err := plannedOf(answer.Pod)
	if err != nil {
		return nil, err
	}
	c.say("pod %s requests %s: the webhook plans %s, held by %s", at.pod, pod.GetLabels()[api.LabelMemory],
		planned.Strategy, tierList(planned.Containers[0].Tiers))
	started, err := startLocal(ctx, p, dir, answer.Pod)
	if err != nil {
		return nil, err
	}
	c.say("pod %s runs: process %s beside its guard", at.pod, at.container)
	return started, nil
}

// hogEnds follows the guard of the hog, and reports how its owner learns of the end and how the neighbour fared.
func (c clock) hogEnds(ctx context.Context, neighbor, hog *local) error {
	defer context.AfterFunc(ctx, hog.end)()
	if err := c.followLog(hog.guardLog); err != nil {
		return err
	}
	end := <-hog.ended
	var exit *exec.ExitError
	if !errors.As(end, &exit) {
		return fmt.Errorf("%w: the hog ended as %v", errUnexpected, end)
	}
	c.say("pod hog: its process ended: %s", exit)
	err := hog.probe(ctx, "--liveness", func(ok bool, said string) bool {
		if !ok {
			c.say("its owner reads, as an Event of the pod: %s", said)
		}
		return !ok
	})
	if err != nil {
		return err
	}
	return c.reportBeats(countBeats(neighbor.printed.String()))
}
