// Package nodecondition writes on each node with an agent whether the agent enforces: the condition gpuslice.dev/Enforcing, which
// "kubectl describe node" shows and alerts read.
package nodecondition

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/guard/ticks"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/leader"
	"github.com/gpuslice/gpuslice/webhook/leader/nodelease"
)

// Type is the condition's type.
const Type corev1.NodeConditionType = api.ConditionEnforcing

// Reasons of the condition: the first of status True, the others of False.
const (
	ReasonEnforcing   = "AgentEnforcing"
	ReasonNotEnforced = "PodsNotEnforced"
	ReasonAway        = "AgentAway"
)

const (
	syncPeriod = 5 * time.Second // between two comparisons of nodes with their agents
	maxMessage = 256             // bytes: agents' reports are longer, and 25-own-rights.yaml allows no more
	// Bounds of what one agent, or the loss of all, makes the leader write.
	writesPerSync = 50
	nodePeriod    = 30 * time.Second // between two writes to one node
)

// Writer writes the condition. Run it in one replica at a time.
type Writer struct {
	Client kubernetes.Interface
	Nodes  cache.SharedIndexInformer // with this condition in their status
	Agents *nodelease.Follower
	Log    logr.Logger
}

// Run writes until ctx is done. It begins lease.Duration after the Leases were read: until then an agent that is away looks as one that
// was just seen.
func (w *Writer) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), w.Nodes.HasSynced, w.Agents.HasSynced) || !ticks.Sleep(ctx, lease.Duration) {
		return nil
	}
	writer := leader.Writer[any]{Period: syncPeriod, Differ: w.differ, Write: w.write, MaxFailures: 1,
		Kind: "Node", Failed: "node condition not written", Log: w.Log}
	return writer.Run(ctx)
}

// differ returns some of the nodes whose condition differs, each time others: List has another order each time.
func (w *Writer) differ() (map[string]any, error) {
	agents, differ := w.Agents.Agents(), map[string]any{}
	for _, object := range w.Nodes.GetStore().List() {
		if len(differ) == writesPerSync {
			break
		}
		if node, ok := object.(*corev1.Node); ok {
			if change := changeOf(node, agents, time.Now()); change != nil {
				differ[node.Name] = change
			}
		}
	}
	return differ, nil
}

// changeOf returns the condition as an element of a strategic merge patch; nil: the node has the right one, or was written just now.
func changeOf(node *corev1.Node, agents map[string]nodelease.Agent, now time.Time) any {
	var have corev1.NodeCondition
	if i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == Type }); i >= 0 {
		have = node.Status.Conditions[i]
	}
	agent, found := agents[node.Name]
	if !found {
		if have.Type == "" {
			return nil
		}
		return map[string]any{"$patch": "delete", "type": Type}
	}
	want := conditionOf(agent)
	if have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message {
		return nil
	}
	if since := now.Sub(have.LastHeartbeatTime.Time); since >= 0 && since < nodePeriod {
		return nil
	}
	want.LastHeartbeatTime, want.LastTransitionTime = metav1.NewTime(now), have.LastTransitionTime
	if have.Status != want.Status {
		want.LastTransitionTime = want.LastHeartbeatTime
	}
	return want
}

// conditionOf returns the condition of a node with this agent, without its times.
func conditionOf(a nodelease.Agent) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: Type, Status: corev1.ConditionFalse}
	switch {
	case !a.Enforces:
		c.Reason = ReasonAway
		c.Message = fmt.Sprintf("The agent has not renewed its Lease for %s. See the agent's pod on this node", lease.Duration)
	case len(a.NotEnforced) > 0:
		first := a.NotEnforced[slices.Min(slices.Collect(maps.Keys(a.NotEnforced)))]
		c.Reason, c.Message = ReasonNotEnforced, fmt.Sprintf("%d pods are not enforced; one because: %s", len(a.NotEnforced), first)
	default:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, ReasonEnforcing, "The agent enforces the slices of all its pods"
	}
	c.Message = strings.ToValidUTF8(c.Message[:min(len(c.Message), maxMessage)], "")
	return c
}

func (w *Writer) write(ctx context.Context, node string, change any) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{change}}})
	if err != nil {
		return err
	}
	if _, err := w.Client.CoreV1().Nodes().
		Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("write condition %s of node %s: %w", Type, node, err)
	}
	return nil
}
