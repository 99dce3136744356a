package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
)

var errNoticed = errors.New("the neighbour noticed something")

// stageNode is the node of the demonstration.
type stageNode struct {
	*install.OnNode
	clock
}

// clock prints lines behind the seconds since the first pod was created.
type clock struct {
	out   io.Writer
	began time.Time
}

func (c clock) say(format string, args ...any) {
	fmt.Fprintf(c.out, "%5.1fs  %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}

// onNode shows two pods that share a GPU, in the box.
func onNode(ctx context.Context, o options, stdout, stderr io.Writer) error {
	fmt.Fprintln(stderr, "--> starting a node: kubelet, containerd, runc, NVIDIA's device plugin on a simulated GPU; and gpuslice on it")
	n := &stageNode{clock: clock{stdout, time.Now()}}
	if err := n.start(ctx); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "    up in %.0f s: three pods of gpuslice's webhook, four replicas of one A100 with 80 GiB\n", time.Since(n.began).Seconds())
	if err := n.twoPods(ctx); err != nil {
		return err
	}
	if !o.keep {
		goOn(stdout)
		return nil
	}
	kubectl, err := n.WriteKubectl(n.Dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, `
The node stays up. In another terminal:
  alias kubectl=%s
  kubectl get pods -A
  kubectl describe pod hog -n team-b
  kubectl logs hog -n team-b -c gpuslice-guard
Ctrl-C ends it and leaves nothing behind.
`, kubectl)
	<-ctx.Done()
	return nil
}

// start starts the node, with the namespaces of both pods and one GPU for both.
func (n *stageNode) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var err error
	if n.OnNode, err = install.StartNode(ctx, box.Dir(), 1); err != nil {
		return err
	}
	policy, err := files.ReadFile("node/policy.yaml")
	if err != nil {
		return err
	}
	for _, p := range []place{quiet(), hog()} {
		// Both see the same words, and so the same device.
		if err := n.GPU(p.namespace, fakegpu.Config{Node: "demo"}); err != nil {
			return err
		}
		if err := errors.Join(n.ShareGPU(p.namespace), n.Namespace(ctx, p.namespace, nil)); err != nil {
			return err
		}
	}
	return errors.Join(n.Policy(ctx, "default", policy), n.Settle(ctx, install.SharedResource))
}

// twoPods is what there is to see.
func (n *stageNode) twoPods(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	fmt.Fprint(n.out, "\n=== Two pods share a GPU; one goes past its slice\n\n")
	n.began = time.Now()
	for _, do := range []func(context.Context, place) error{n.create, n.started} {
		for _, p := range []place{quiet(), hog()} {
			if err := do(ctx, p); err != nil {
				return err
			}
		}
	}
	if err := n.followGuard(ctx); err != nil {
		return err
	}
	end, err := n.ended(ctx)
	if err != nil {
		return err
	}
	n.say("pod hog: container trainer ended with exit code %d", end.ExitCode)
	n.say("waiting for the kubelet to ask the guard (every 30 s) and to write an Event")
	event, err := n.event(ctx)
	if err != nil {
		return err
	}
	n.say("kubectl get events -n team-b: %s %s %s\n        %s", event.Type, event.Reason, "pod/"+event.InvolvedObject.Name, strings.TrimSpace(event.Message))
	return n.unharmed(ctx)
}

// create creates a pod from its file.
func (n *stageNode) create(ctx context.Context, p place) error {
	text, err := files.ReadFile(filepath.Join("node", p.pod+".yaml"))
	if err != nil {
		return err
	}
	return n.Apply.Apply(ctx, text)
}

// started returns once a pod runs.
func (n *stageNode) started(ctx context.Context, p place) error {
	made, err := n.await(ctx, p, "containers that run", func(made *corev1.Pod) bool { return made.Status.Phase == corev1.PodRunning })
	if err != nil {
		return err
	}
	n.say("pod %s runs, in a slice of %s: %s", p.pod, made.Labels[api.LabelMemory], containerNames(made))
	return nil
}

// unharmed says how the neighbour fared.
func (n *stageNode) unharmed(ctx context.Context) error {
	beats, gaps, err := n.beats(ctx, quiet())
	if err != nil {
		return err
	}
	return n.reportBeats(beats, gaps)
}

func (c clock) reportBeats(beats, gaps int) error {
	c.say("pod quiet: %d heartbeats, %d missing, same process, no restart", beats, gaps)
	if gaps > 0 || beats == 0 {
		return fmt.Errorf("%w: %d of %d heartbeats are missing", errNoticed, gaps, beats+gaps)
	}
	return nil
}
