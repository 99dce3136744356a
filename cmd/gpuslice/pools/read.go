package pools

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/record"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// reader reads pools from a cluster.
type reader struct {
	client  kubernetes.Interface
	system  string
	streams cli.Streams
	unread  []cli.Error
}

// pools are those that the webhook knows, as far as they may be read.
func (r *reader) pools(ctx context.Context) ([]pool, error) {
	nodes, err := installed.Nodes(ctx, r.client)
	if err != nil {
		return nil, err
	}
	var objects webhookcluster.Objects
	objects.Source, err = installed.Source(ctx, r.client, nodes)
	if err := r.lacks("pools of dynamic resource allocation are unknown", err); err != nil {
		return nil, err
	}
	if objects.Policies, err = installed.Policies(ctx, r.client, r.system); err == nil {
		objects.State, err = installed.State(ctx, r.client, r.system)
	}
	if err := r.lacks("pools that policies declare or that are remembered are unknown", err); err != nil {
		return nil, err
	}
	pods, err := installed.LivingPods(ctx, r.client, []string{metav1.NamespaceAll})
	podsKnown := err == nil
	if err := r.lacks("what is requested is unknown", err); err != nil {
		return nil, err
	}
	all := []pool{}
	for _, p := range clusters.PrintedPools(webhookcluster.ReadSnapshot(objects).Pools()) {
		one := pool{Pool: p}
		var requested map[string]int64
		if podsKnown {
			requested = installed.Requested(pods, p.Resource)
		}
		if !p.ByClass {
			one.count(nodes, requested)
		}
		all = append(all, one)
	}
	return all, nil
}

// lacks reports the gap in the answer because of a missing right. Any other error is returned.
func (r *reader) lacks(what string, err error) error {
	if err == nil || !apierrors.IsForbidden(err) {
		return err
	}
	r.fail(fmt.Sprintf("%s: %v", what, err))
	return nil
}

// fail reports a gap in the answer.
func (r *reader) fail(text string) {
	r.unread = append(r.unread, cli.Error{Place: cli.Place{Source: "cluster"}, Message: text})
	fmt.Fprintln(r.streams.Err, text)
}

// count counts the pool's allocatable units and the pods' requests; requested nil: they are unknown. There is no room
// on a node that is cordoned, and a node that has too much gives no other node room.
func (p *pool) count(nodes []*corev1.Node, requested map[string]int64) {
	var offered, taken, free int64
	for _, n := range nodes {
		if !slices.Contains(p.Nodes, n.Name) {
			continue
		}
		units := installed.Count(n.Status.Allocatable, p.Resource)
		offered, taken = offered+units, taken+requested[n.Name]
		if !n.Spec.Unschedulable {
			free += max(units-requested[n.Name], 0)
		}
	}
	p.Allocatable = &offered
	if requested != nil {
		p.Requested, p.Free = &taken, &free
	}
}

// poolsOfSlices are the pools of the slices in a namespace, whose name, strategy and resource are on pods.
func (r *reader) poolsOfSlices(ctx context.Context, namespace string) ([]pool, error) {
	pods, err := installed.LivingPods(ctx, r.client, []string{namespace})
	if err != nil {
		return nil, err
	}
	seen, all := map[string]bool{}, []pool{}
	for i := range pods {
		given, err := record.Promise(&pods[i])
		if err != nil || given == nil || len(given.Containers) == 0 || seen[given.Planned.Pool] {
			continue
		}
		seen[given.Planned.Pool] = true
		all = append(all, pool{Pool: clusters.Pool{Name: given.Planned.Pool, Strategy: given.Strategy,
			Resource: cmp.Or(given.Containers[0].Resource, given.Containers[0].Template), Nodes: []string{}, Notes: []string{}}})
	}
	return all, nil
}
