package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/standing"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// auditor judges what runs as if it came anew.
type auditor struct {
	client kubernetes.Interface
	engine *engine
	system string
	items  []audited
	errors []documentError
}

// audited is what enforce would do in a namespace: an item of audit -o json.
type audited struct {
	Namespace string                 `json:"namespace"`
	Policy    string                 `json:"policy"`
	Mode      config.EnforcementMode `json:"mode"`
	Looked    int                    `json:"looked"`
	Groups    []auditGroup           `json:"groups"`
}

// auditGroup is what would meet the same fate for the same reason.
type auditGroup struct {
	Would    policies.Outcome `json:"would"`
	Rule     string           `json:"rule"`             // stable: that of metrics
	Reason   string           `json:"reason,omitempty"` // of a refusal, for people
	Count    int              `json:"count"`
	Examples []auditedOne     `json:"examples"`
}

// auditedOne is one of a group.
type auditedOne struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Message string `json:"message,omitempty"`
}

// maxExamples bounds those of one group.
const maxExamples = 3

// audit looks at one namespace.
func (a *auditor) audit(ctx context.Context, namespace string) error {
	in := a.engine.cluster.input(namespace)
	item := audited{Namespace: namespace, Policy: in.Policy.Name, Mode: in.Policy.EnforcementMode, Groups: []auditGroup{}}
	objects, err := workloads(ctx, a.client, namespace)
	if err != nil {
		return err
	}
	for _, o := range objects {
		r, err := a.engine.judge(ctx, o)
		if err != nil {
			a.errors = append(a.errors, documentError{o.at, fmt.Errorf("%s %s/%s: %w", o.kind, o.namespace, o.name, err)})
			continue
		}
		item.count(o.kind, o.name, r.decision)
	}
	pods, err := a.pods(ctx, namespace)
	if err != nil {
		return err
	}
	for _, p := range pods {
		item.count("Pod", p.pod.Name, p.decision)
	}
	slices.SortStableFunc(item.Groups, func(x, y auditGroup) int {
		return cmp.Or(cmp.Compare(severity(x.Would), severity(y.Would)), cmp.Compare(y.Count, x.Count), strings.Compare(x.Rule+x.Reason, y.Rule+y.Reason))
	})
	a.items = append(a.items, item)
	return nil
}

func severity(o policies.Outcome) int {
	return slices.Index([]policies.Outcome{policies.Refused, policies.Rewritten, policies.Voided, policies.LeftAlone}, o)
}

// count puts an object into its group.
func (i *audited) count(kind, name string, d policies.Decision) {
	i.Looked++
	g := auditGroup{Would: d.Would, Rule: d.Reason(), Examples: []auditedOne{}}
	message := ""
	switch {
	case d.Would == policies.Refused && len(d.Violations) > 0:
		g.Reason, message = d.Violations[0].Reason, d.Message()
	case d.Would == policies.Rewritten:
		message = summary(d)
	}
	at := slices.IndexFunc(i.Groups, func(have auditGroup) bool {
		return have.Would == g.Would && have.Rule == g.Rule && have.Reason == g.Reason
	})
	if at < 0 {
		at = len(i.Groups)
		i.Groups = append(i.Groups, g)
	}
	found := &i.Groups[at]
	found.Count++
	if len(found.Examples) < maxExamples {
		found.Examples = append(found.Examples, auditedOne{kind, name, message})
	}
}

// auditedPod is a living pod and what would become of it.
type auditedPod struct {
	pod      *corev1.Pod
	in       policies.Input
	decision policies.Decision
}

// pods judges the living pods of a namespace. Their quota is counted over all namespaces that share the budget.
func (a *auditor) pods(ctx context.Context, namespace string) (out []auditedPod, err error) {
	key := config.BudgetKey(namespace, a.engine.cluster.input(namespace).Policy.Quota)
	var all []auditedPod
	for _, name := range slices.Sorted(maps.Keys(a.engine.cluster.namespaces)) {
		in := a.engine.cluster.input(name)
		if in.Policy == nil || in.Policy.Mode == config.ModeOff || config.BudgetKey(name, in.Policy.Quota) != key {
			continue
		}
		pods, err := standing.Living(ctx, a.client, []string{name})
		if err != nil {
			return nil, err
		}
		for i := range pods {
			all = append(all, judgePod(in, &pods[i]))
		}
	}
	slices.SortStableFunc(all, func(x, y auditedPod) int { return x.pod.CreationTimestamp.Compare(y.pod.CreationTimestamp.Time) })
	if err := a.overQuota(ctx, all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p auditedPod) bool { return p.pod.Namespace != namespace }), nil
}

// judgePod judges a living pod as if it came anew: where it was placed, and how it does, is not its author's word.
func judgePod(in policies.Input, living *corev1.Pod) auditedPod {
	pod := living.DeepCopy()
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{QOSClass: living.Status.QOSClass}
	in.Pod = pod
	if promise := promise.ClaimedPromise(pod); promise != nil {
		return auditedPod{pod, in, policies.Verify(in, promise)}
	}
	return auditedPod{pod, in, policies.Decide(in)}
}

// overQuota lets the pods into their budget one after the other, and refuses those for whom there is no room.
func (a *auditor) overQuota(ctx context.Context, pods []auditedPod) error {
	tally, quotas := ledger.NewTally(ledger.State{}), map[string]quota.Quota{}
	for i := range pods {
		p := &pods[i]
		quota, known := quotas[p.pod.Namespace]
		if !known {
			var err error
			if quota, err = a.quotaOf(ctx, p.in); err != nil {
				return err
			}
			quotas[p.pod.Namespace] = quota
		}
		if p.decision.Would == policies.Refused {
			continue
		}
		r := ledger.Reservation{PodUID: string(p.pod.UID), Name: p.pod.Name, Holding: p.holding()}
		if excess := tally.Excess(quota, r); len(excess) > 0 {
			p.decision = policies.DenyQuota(p.in, excess)
			continue
		}
		tally.Reserve(r)
	}
	return nil
}

// quotaOf is what pods of a namespace would be held against.
func (a *auditor) quotaOf(ctx context.Context, in policies.Input) (quota.Quota, error) {
	native, err := standing.NativeIn(ctx, a.client, in.Namespace.Name)
	if err != nil {
		return quota.Quota{}, err
	}
	enforced := *in.Policy
	enforced.EnforcementMode = config.EnforceFull
	own := config.QuotaFor(in.Namespace.Name, in.Policy.Quota, in.Policy.TenantQuota)
	return policies.WithNative(own, in.Namespace.Name, &enforced, native), nil
}

// holding is what the pod would hold.
func (p *auditedPod) holding() quota.Holding {
	if p.decision.Promise != nil {
		return p.decision.Promise.Holding(p.pod)
	}
	if promise := promise.ClaimedPromise(p.pod); promise != nil {
		return promise.Holding(p.pod)
	}
	h, _ := promise.ExclusiveHolding(p.pod, p.in.Pools)
	return h
}
