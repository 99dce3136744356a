package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/demo"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
)

//go:embed *.yaml
var files embed.FS

// stageNode is the node of the demonstration.
type stageNode struct {
	*install.OnNode
	demo.Clock
}

// onNode shows two pods that share a GPU, in the box.
func onNode(ctx context.Context, o options, stdout, stderr io.Writer) error {
	fmt.Fprintln(stderr, "--> starting a node: kubelet, containerd, runc, NVIDIA's device plugin on a simulated GPU; and gpuslice on it")
	n := &stageNode{Clock: demo.Clock{Out: stdout, Began: time.Now()}}
	if err := n.start(ctx); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "    up in %.0f s: three pods of gpuslice's webhook, four replicas of one A100 with 80 GiB\n",
		time.Since(n.Began).Seconds())
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
	ctx, cancel := context.WithTimeout(ctx, demo.Within)
	defer cancel()
	if err := n.GPU(demo.Quiet().Namespace, fakegpu.Config{Devices: keptDevices}); err != nil {
		return err
	}
	return errors.Join(n.Offer(ctx, keptDevices), n.Settle(ctx, install.SharedResource))
}

// demoPolicy is the name of the policy that governs both pods.
const demoPolicy = "demo"

// start starts the node, with gpuslice, the namespaces of both pods and one GPU.
func (n *stageNode) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, demo.Within)
	defer cancel()
	var err error
	if n.OnNode, err = install.StartOpenNode(ctx, box.Dir(), 1); err != nil {
		return err
	}
	if err := n.installChart(ctx); err != nil {
		return err
	}
	policy, err := files.ReadFile("policy.yaml")
	if err != nil {
		return err
	}
	for _, p := range []demo.Place{demo.Quiet(), demo.Hog()} {
		if err := n.Namespace(ctx, p.Namespace, nil); err != nil {
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
	ctx, cancel := context.WithTimeout(ctx, demo.Within)
	defer cancel()
	fmt.Fprint(n.Out, "\n=== Two pods share a GPU; one goes past its slice\n\n")
	n.Began = time.Now()
	for _, do := range []func(context.Context, demo.Place) error{n.create, n.started} {
		for _, p := range []demo.Place{demo.Quiet(), demo.Hog()} {
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
	n.Say("pod hog: container trainer ended with exit code %d", end.ExitCode)
	n.Say("waiting for the Event on the pod")
	event, err := n.event(ctx)
	if err != nil {
		return err
	}
	n.Say("kubectl get events -n demo-b: %s %s %s\n        %s", event.Type, event.Reason,
		"pod/"+event.InvolvedObject.Name, strings.TrimSpace(event.Message))
	return n.unharmed(ctx)
}

// create creates a pod from its file.
func (n *stageNode) create(ctx context.Context, p demo.Place) error {
	text, err := files.ReadFile(p.Pod + ".yaml")
	if err != nil {
		return err
	}
	return n.Apply.Apply(ctx, text)
}

// started returns once a pod runs.
func (n *stageNode) started(ctx context.Context, p demo.Place) error {
	made, err := n.await(ctx, p, "containers that run", func(made *corev1.Pod) bool { return made.Status.Phase == corev1.PodRunning })
	if err != nil {
		return err
	}
	n.Say("pod %s runs, in a slice of %s: %s", p.Pod, made.Labels[api.LabelMemory], containerNames(made))
	return nil
}

// unharmed reports how the neighbor fared.
func (n *stageNode) unharmed(ctx context.Context) error {
	beats, gaps, err := n.beats(ctx, demo.Quiet())
	if err != nil {
		return err
	}
	return n.ReportBeats(beats, gaps)
}

// helmFile is where the node's box has helm: it is built outside, where there is a network.
const helmFile = "helm"

// writePrograms writes the programs that a user has into a folder below dir, each reaching the cluster from any shell, and
// returns the folder. helm "": none.
func writePrograms(server *cluster.APIServer, dir, command, helm string) (string, error) {
	folder := filepath.Join(dir, "bin")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", fmt.Errorf("make folder of programs: %w", err)
	}
	for name, path := range map[string]string{"kubectl": server.Program("kubectl"), "gpuslice": command, "helm": helm} {
		if path == "" {
			continue
		}
		if _, err := server.WriteProgram(folder, name, path); err != nil {
			return "", err
		}
	}
	return folder, nil
}
