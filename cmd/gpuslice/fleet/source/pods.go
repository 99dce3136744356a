package source

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresources "k8s.io/component-helpers/resource"

	"github.com/gpuslice/gpuslice/cmd/client/record"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/scrape"
	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

// addPod adds a pod with GPUs, or the requests of another to its node.
func (r *reader) addPod(p *corev1.Pod) {
	given, err := record.Promise(p)
	if err != nil {
		r.notePod(p, fmt.Sprintf(": what it was given cannot be read: %v", err))
	}
	requests := resources(podresources.PodRequests(p, podresources.PodResourcesOptions{}))
	gpus := given != nil || len(p.Spec.ResourceClaims) > 0
	for name := range requests {
		gpus = gpus || pools.IsGPU(name, r.pools)
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			r.countOther(name, func(o *others) { o.pods++ })
		}
	}
	if gpus {
		r.out.Pods = append(r.out.Pods, podOf(p, given, requests))
		r.usages.Add(p)
		return
	}
	if n := r.nodes[p.Spec.NodeName]; n != nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		if n.Others == nil {
			n.Others = inventory.Resources{}
		}
		maps.DeleteFunc(requests, func(name string, _ int64) bool { return n.Allocatable[name] == 0 }) // a kubelet runs such pods, too
		n.Others.Plus(requests)
		n.Others[string(corev1.ResourcePods)]++
	}
}

func podOf(p *corev1.Pod, given *promise.Promise, requests inventory.Resources) inventory.Pod {
	out := inventory.Pod{
		Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Node: p.Spec.NodeName, Phase: p.Status.Phase, Created: p.CreationTimestamp.UTC(),
		Requests: requests, SchedulerName: p.Spec.SchedulerName, NodeSelector: p.Spec.NodeSelector,
		Affinity: p.Spec.Affinity, Tolerations: p.Spec.Tolerations,
		Spread: p.Spec.TopologySpreadConstraints, Claims: len(p.Spec.ResourceClaims),
	}
	if p.Spec.Priority != nil {
		out.Priority = *p.Spec.Priority
	}
	if c := metav1.GetControllerOf(p); c != nil {
		out.Owner = inventory.Owner{Kind: c.Kind, Name: c.Name}
	}
	if out.Node != "" {
		out.Bound = usage.BoundAt(p)
	}
	if out.Over() {
		out.Ended = endedAt(p)
	} else if out.Node == "" {
		out.Waiting = waiting(p)
	}
	if given == nil {
		return out
	}
	out.Slices = slicesOf(p, given)
	own := map[string]bool{"": true}
	for _, c := range given.Containers {
		if !own[c.Claim] {
			out.Claims--
		}
		own[c.Claim] = true
	}
	out.Claims = max(out.Claims, 0)
	return out
}

// slicesOf are the slices of a pod.
func slicesOf(p *corev1.Pod, given *promise.Promise) (all []inventory.Slice) {
	planned := given.PlannedOn(p)
	for _, c := range given.Containers {
		one := inventory.Slice{Container: c.Name, Pool: planned.Pool, Resource: c.Resource,
			Count: c.Count, Memory: c.Slice, Limit: c.Limit, Strategy: given.Strategy}
		for _, at := range planned.Containers {
			if at.Name == c.Name {
				one.Compute, one.Tier = at.Compute, api.Strongest(at.Tiers)
			}
		}
		if size := given.Request.Of(c.Name).Size; !size.Fraction.Zero() {
			one.Fraction = float64(size.Fraction.Num) / float64(size.Fraction.Den)
		} else {
			one.Requested = size.Memory
		}
		one.Observed = api.Strongest(record.Observed(p, c.Name))
		all = append(all, one)
	}
	return all
}

// endedAt is when the last container ended; zero: that is not known.
func endedAt(p *corev1.Pod) (at time.Time) {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := s.State.Terminated; t != nil && t.FinishedAt.After(at) {
			at = t.FinishedAt.UTC()
		}
	}
	return at
}

// waiting is why a pod has no node, in the scheduler's words.
func waiting(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			return shorten.Line(cmp.Or(c.Message, c.Reason), maxSentence)
		}
	}
	return "the scheduler has not tried it yet"
}

// readUsage adds measurements of agents and guards to slices.
func (r *reader) readUsage(ctx context.Context) error {
	client, err := scrape.Connect(r.Config)
	if err != nil {
		return err
	}
	r.usages.Measure(ctx, client, r.system)
	type key struct{ namespace, pod, container string }
	found, unknown := map[key][]inventory.Usage{}, map[string]int{}
	for _, u := range r.usages.Usages {
		switch {
		case u.UsedBytes != nil:
			k := key{u.Namespace, u.Pod, u.Container}
			found[k] = append(found[k], usageOf(&u))
		case u.Source != "": // it should be measured
			unknown[u.Unknown]++
		}
	}
	for i := range r.out.Pods {
		p := &r.out.Pods[i]
		for j := range p.Slices {
			p.Slices[j].Usage = found[key{p.Namespace, p.Name, p.Slices[j].Container}]
		}
	}
	reasons := slices.Sorted(maps.Keys(unknown))
	for _, reason := range reasons[:min(len(reasons), 20)] {
		r.note(fmt.Sprintf("the usage of %d containers is unknown: %s", unknown[reason], reason))
	}
	return nil
}

// usageOf is a measured usage. A guard may be its tenant's: values that inventory.Read does not accept would keep the
// snapshot from being written.
func usageOf(u *scrape.Usage) inventory.Usage {
	used := max(min(*u.UsedBytes, inventory.MaxQuantity), 0)
	out := inventory.Usage{Device: shorten.Line(u.Device, 253), UsedBytes: used, PeakBytes: used}
	if r := u.Utilization; r != nil && *r >= 0 { // not NaN
		out.Utilization = new(min(*r, 1))
	}
	if u.PeakBytes != nil {
		out.PeakBytes = max(min(*u.PeakBytes, inventory.MaxQuantity), used)
	}
	return out
}
