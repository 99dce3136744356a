package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// addPods adds the living pods of the audited namespaces. The pods of a budget are read once for all namespaces that share it.
func (a *auditor) addPods(ctx context.Context) error {
	items, judged := map[string]*audited{}, map[string]bool{}
	for i := range a.items {
		namespace := a.items[i].Namespace
		items[namespace], judged[a.budgetOf(namespace)] = &a.items[i], true
	}
	shared := a.budgets()
	for _, budget := range slices.Sorted(maps.Keys(judged)) {
		all, err := a.pods(ctx, shared[budget], items)
		if err != nil {
			return err
		}
		for _, item := range items {
			item.Claims = slices.DeleteFunc(item.Claims, func(m member) bool {
				return m.Kind == kindClaim && all.scheduler[item.Namespace+"/"+m.Name]
			})
		}
		for _, p := range all.pods {
			item := items[p.Pod.Namespace]
			switch {
			case item == nil: // it shares the budget, and is not audited
			case p.Err != nil:
				pod := manifest.Object{At: manifest.Source{File: "cluster"}, Kind: "Pod", Namespace: item.Namespace, Name: p.Pod.Name}
				a.fail(pod, failure(p.Err))
			default:
				item.add(all.outcome(p))
			}
		}
	}
	return nil
}

// failure is why a pod cannot be evaluated, without a stack.
func failure(err error) error {
	if !errors.Is(err, errPanic) {
		return err
	}
	reason, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%w: %s", cli.ErrInternal, reason)
}

// budgetOf is the key of the budget in which pods of a governed namespace count.
func (a *auditor) budgetOf(namespace string) string {
	return a.engine.Cluster.Input(namespace).Policy.Quota.BudgetKey(namespace)
}

// budgets are the governed namespaces by budget.
func (a *auditor) budgets() map[string][]string {
	shared := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(a.engine.Cluster.Labels)) {
		if a.inScope(name) && !a.engine.Cluster.Input(name).Policy.Off() {
			shared[a.budgetOf(name)] = append(shared[a.budgetOf(name)], name)
		}
	}
	return shared
}

// podsPerPage is as many as kubectl reads: more requests take longer, and the list expires after minutes.
const podsPerPage = 500

// living are the living pods of a budget, of which little is kept.
type living struct {
	pods      []subject
	alone     map[string]outcome // by namespace and name: the pod's outcome without its quota
	scheduler map[string]bool    // by namespace and name: claims that the scheduler made for extended resources
}

// outcome is the outcome of a pod.
func (l living) outcome(p subject) outcome {
	if len(p.Decision.Violations) > 0 { // the quota's: those before are forgotten
		return outcomeOf("Pod", p.Pod.Name, p.Decision)
	}
	return l.alone[p.Pod.Namespace+"/"+p.Pod.Name]
}

// pods evaluates the living pods of namespaces that share a budget, over all of which their quota is counted. items are those audited.
func (a *auditor) pods(ctx context.Context, namespaces []string, items map[string]*audited) (living, error) {
	all := living{alone: map[string]outcome{}, scheduler: map[string]bool{}}
	r := reader{Client: a.client.Discovery().RESTClient(), PageSize: podsPerPage,
		InputOf: func(_ context.Context, pod *corev1.Pod) (policies.Input, error) {
			if made := pod.Status.ExtendedResourceClaimStatus; made != nil { // tenants write names and annotations of claims, but no status
				all.scheduler[pod.Namespace+"/"+made.ResourceClaimName] = true
			}
			return a.engine.Cluster.InputOf(pod.Namespace, pod), nil
		}}
	for _, name := range namespaces {
		err := r.each(ctx, name, func(p subject) {
			if items[name] != nil && p.Err == nil {
				all.alone[name+"/"+p.Pod.Name] = outcomeOf("Pod", p.Pod.Name, p.Decision)
			}
			p.forget()
			all.pods = append(all.pods, p)
		})
		if err != nil {
			return all, err
		}
	}
	return all, withinQuota(all.pods, func(in policies.Input) (quota.Quota, error) { return a.quotaOf(ctx, in) })
}

// quotaOf is the quota of a namespace's pods.
func (a *auditor) quotaOf(ctx context.Context, in policies.Input) (quota.Quota, error) {
	native, err := installed.NativeQuotas(ctx, a.client, in.Namespace.Name)
	if err != nil {
		return quota.Quota{}, err
	}
	enforced := *in.Policy
	enforced.EnforcementMode = api.EnforceFull
	in.Policy = &enforced
	return accounting.WithNative(in.Policy.QuotaFor(in.Namespace.Name), in.Policy, in.Namespace.Name, native), nil
}
