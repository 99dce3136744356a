package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
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
	fmt.Fprintf(stderr, "    up in %.0f s: three pods of gpuslice's webhook, four replicas of one A100 with 80 GiB\n",
		time.Since(n.began).Seconds())
	if err := n.twoPods(ctx); err != nil {
		return err
	}
	if !o.keep {
		return nil
	}
	if err := n.makeRoom(ctx); err != nil {
		return err
	}
	programs, err := writePrograms(n.APIServer, n.Dir, install.Command(box.Dir()), filepath.Join(box.Dir(), helmFile))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, `
The cluster stays up, with gpuslice installed by its chart: %d slices on four A100. Every pod runs, in any namespace and with
any image name: no image is pulled, but a program that prints what the container would run, and holds 1Gi of the simulated GPU.
In another terminal:

export KUBECONFIG=%s
export PATH=%s:$PATH

Then follow the README's Quickstart, or apply pods of your own; "gpuslice explain hog -n demo-b" explains what you saw above.
Ctrl-C ends the cluster and leaves nothing behind.
`, 4*keptDevices, n.Kubeconfig, programs)
	<-ctx.Done()
	return nil
}

// keptDevices are the GPUs of the cluster that stays up.
const keptDevices = 4

// makeRoom adds GPUs to the one of the two pods.
func (n *stageNode) makeRoom(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := n.GPU(quiet().namespace, fakegpu.Config{Devices: keptDevices}); err != nil {
		return err
	}
	return errors.Join(n.Offer(ctx, keptDevices), n.Settle(ctx, install.SharedResource))
}

// demoPolicy is the name of the policy that governs both pods.
const demoPolicy = "demo"

// start starts the node, with gpuslice, the namespaces of both pods and one GPU.
func (n *stageNode) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var err error
	if n.OnNode, err = install.StartOpenNode(ctx, box.Dir(), 1); err != nil {
		return err
	}
	if err := n.installChart(ctx); err != nil {
		return err
	}
	policy, err := files.ReadFile("node/policy.yaml")
	if err != nil {
		return err
	}
	for _, p := range []place{quiet(), hog()} {
		if err := n.Namespace(ctx, p.namespace, nil); err != nil {
			return err
		}
	}
	return errors.Join(n.Policy(ctx, demoPolicy, policy), n.Settle(ctx, install.SharedResource))
}

// installChart installs gpuslice by deploy/README.md.
func (n *stageNode) installChart(ctx context.Context) error {
	checkout, err := cluster.Checkout()
	if err != nil {
		return err
	}
	helm := exec.CommandContext(ctx, filepath.Join(box.Dir(), helmFile), "install", "gpuslice",
		"deploy/chart", "--namespace="+api.SystemNamespace,
		"--create-namespace", "--wait", "--set=image.tag="+install.Tag)
	helm.Dir, helm.Env = checkout, []string{"HOME=" + n.Dir, "KUBECONFIG=" + n.Kubeconfig}
	if out, err := helm.CombinedOutput(); err != nil {
		return fmt.Errorf("install the chart: %w\n%s", err, out)
	}
	labels := []string{"app.kubernetes.io/name=gpuslice", "pod-security.kubernetes.io/enforce=restricted"}
	if _, err := n.Kubectl(ctx, append([]string{"label", "namespace", api.SystemNamespace}, labels...)...); err != nil {
		return err
	}
	return n.AwaitWebhook(ctx)
}

// twoPods shows the two pods.
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
	n.say("waiting for the Event on the pod")
	event, err := n.event(ctx)
	if err != nil {
		return err
	}
	n.say("kubectl get events -n demo-b: %s %s %s\n        %s", event.Type, event.Reason,
		"pod/"+event.InvolvedObject.Name, strings.TrimSpace(event.Message))
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

// unharmed reports how the neighbour fared.
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
