package install

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// AgentName is the name of the agent's DaemonSet.
const AgentName = "gpuslice-agent"

// StartAgent installs the node's agent, as users do, and returns once it enforces. It sees the GPU of c. Each of edits
// is a text of the manifest and its replacement.
func (n *OnNode) StartAgent(ctx context.Context, c fakegpu.Config, edits ...[2]string) error {
	if err := n.GPU(api.SystemNamespace, c); err != nil {
		return err
	}
	level := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)
	if _, err := n.Client.CoreV1().Namespaces().Patch(ctx, api.SystemNamespace,
		types.MergePatchType, level, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("let the agent have hostPID: %w", err)
	}
	// The GPU Operator labels nodes with GPUs.
	if err := n.Label(ctx, map[string]string{"nvidia.com/gpu.present": "true"}); err != nil {
		return err
	}
	text, err := deploy.Files.ReadFile("agent/agent.yaml")
	if err != nil {
		return err
	}
	manifest := strings.ReplaceAll(string(text), ":VERSION", ":"+Tag)
	for _, e := range edits {
		if strings.Count(manifest, e[0]) != 1 {
			return fmt.Errorf("the agent's manifest has %q %d times", e[0], strings.Count(manifest, e[0]))
		}
		manifest = strings.Replace(manifest, e[0], e[1], 1)
	}
	if err := n.Apply.Apply(ctx, []byte(manifest)); err != nil {
		return fmt.Errorf("apply the agent: %w", err)
	}
	return n.awaitAgent(ctx)
}

// awaitAgent returns once the agent's pod is ready.
func (n *OnNode) awaitAgent(ctx context.Context) error {
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		set, err := n.Client.AppsV1().DaemonSets(api.SystemNamespace).Get(ctx, AgentName, metav1.GetOptions{})
		if err == nil && set.Status.ObservedGeneration == set.Generation &&
			set.Status.DesiredNumberScheduled == 1 && set.Status.NumberReady == 1 {
			return nil
		}
		select {
		case <-ctx.Done():
			described, _ := n.Kubectl(context.WithoutCancel(ctx), "describe", "pods",
				"--namespace="+api.SystemNamespace, "--selector=app.kubernetes.io/component=agent")
			logged, _ := n.Kubectl(context.WithoutCancel(ctx), "logs",
				"--namespace="+api.SystemNamespace, "--selector=app.kubernetes.io/component=agent")
			return fmt.Errorf("wait for the agent (%v): %w\n%s\n%s", err, context.Cause(ctx), described, logged)
		case <-poll.C:
		}
	}
}
