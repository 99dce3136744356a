package reports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// Options configure an Auditor.
type Options struct {
	Client   kubernetes.Interface
	Interval time.Duration
	// Configurations are the mutating webhook configurations, which say of which namespaces pods are reviewed.
	Configurations []string
	// Governed returns the namespaces whose policy is on, or cannot be read; an error: they are not known.
	Governed func() ([]nativequota.Governed, error)
	// InputOf returns what a decision about a pod depends on.
	InputOf func(ctx context.Context, pod *corev1.Pod) (policies.Input, error)
	// QuotaOf returns what pods of a namespace are limited by.
	QuotaOf func(policies.Input) quota.Quota
	Log     logr.Logger
}

// Auditor writes Reports at intervals, in one replica at a time.
type Auditor struct {
	options Options
	store   Store
	absent  bool // the API was, when last looked for
}

// NewAuditor returns an Auditor.
func NewAuditor(o Options) *Auditor {
	return &Auditor{options: o, store: Store{o.Client.Discovery().RESTClient()}}
}

// podsPerPage is how many pods are read at once: of those that use no GPU only the number is kept.
const podsPerPage = 200

// Run audits until ctx ends.
func (a *Auditor) Run(ctx context.Context) error {
	tick := time.NewTicker(a.options.Interval)
	defer tick.Stop()
	for {
		if err := a.audit(ctx); err != nil && ctx.Err() == nil {
			a.options.Log.Error(err, "cannot audit", "retryAfter", a.options.Interval.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// audit writes the Report of each namespace that is governed and not enforced.
func (a *Auditor) audit(ctx context.Context) error {
	served, err := a.store.Served(ctx)
	if err != nil {
		return err
	}
	if !served {
		if !a.absent {
			a.options.Log.Info("no reports are written: the cluster has no API " + APIVersion + "; install the CustomResourceDefinitions of openreports.io")
		}
		a.absent = true
		return nil
	}
	a.absent = false
	governed, err := a.governed(ctx)
	if err != nil {
		return err
	}
	var errs []error
	kept := map[string]bool{} // also where the audit failed: what was found last still stands there
	for _, g := range governed {
		switch {
		case g.Policy == nil:
			kept[g.Namespace] = true
		case g.Policy.EnforcementMode != api.EnforceFull:
			kept[g.Namespace] = true
			errs = append(errs, a.report(ctx, g, governed))
		}
	}
	return errors.Join(append(errs, a.store.DeleteExcept(ctx, func(namespace string) bool { return kept[namespace] }))...)
}

// governed are the namespaces of which the API server asks about pods.
func (a *Auditor) governed(ctx context.Context) ([]nativequota.Governed, error) {
	all, err := a.options.Governed()
	if err != nil {
		return nil, err
	}
	var selectors []labels.Selector
	for _, name := range a.options.Configurations {
		c, err := a.options.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read which namespaces are reviewed: %w", err)
		}
		for _, w := range c.Webhooks {
			if selector, err := metav1.LabelSelectorAsSelector(w.NamespaceSelector); err == nil && w.NamespaceSelector != nil && w.Name == webhookOfPods {
				selectors = append(selectors, selector)
			}
		}
	}
	return slices.DeleteFunc(all, func(g nativequota.Governed) bool {
		of := labels.Set{}
		for key, value := range g.Labels {
			of[key] = value
		}
		of[corev1.LabelMetadataName] = g.Namespace
		return !slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(of) })
	}), nil
}

// webhookOfPods is the webhook by which pods get slices.
const webhookOfPods = "pods." + api.Domain

// report audits one namespace. Its quota is counted over all that share the budget.
func (a *Auditor) report(ctx context.Context, g nativequota.Governed, governed []nativequota.Governed) error {
	key := g.Policy.Quota.BudgetKey(g.Namespace)
	var pods []Pod
	idle := 0
	for _, other := range governed {
		if other.Policy == nil || other.Policy.Quota.BudgetKey(other.Namespace) != key {
			continue
		}
		found, rest, err := a.pods(ctx, other.Namespace)
		if err != nil {
			return err
		}
		pods = append(pods, found...)
		if other.Namespace == g.Namespace {
			idle = rest
		}
	}
	err := WithinQuota(pods, func(in policies.Input) (quota.Quota, error) {
		enforced := *in.Policy
		enforced.EnforcementMode = api.EnforceFull
		in.Policy = &enforced
		return a.options.QuotaOf(in), nil
	})
	if err != nil {
		return err
	}
	subjects := slices.Repeat([]Subject{{Result: skipped}}, idle)
	for i := range pods {
		if p := &pods[i]; p.Pod.Namespace == g.Namespace {
			subjects = append(subjects, Subject{"Pod", p.Pod.Name, ResultOf(p.Decision, p.Sliced()), p.Decision.Reason(), messageOf(p.Decision)})
		}
	}
	return a.store.Apply(ctx, Of(g.Namespace, g.Policy.Name, subjects, time.Now()))
}

func messageOf(d policies.Decision) string {
	if d.IfEnforced == policies.Mutated && d.Planned != nil {
		return fmt.Sprintf("%s on %s, enforcement planned: %s", d.Planned.Strategy, d.Planned.Pool, cmp.Or(d.Planned.Tier, "none"))
	}
	return d.Message()
}

// pods evaluates the living pods of a namespace; idle is how many others there are, which nothing would change for.
func (a *Auditor) pods(ctx context.Context, namespace string) (pods []Pod, idle int, err error) {
	options := metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed", Limit: podsPerPage}
	for {
		list, err := a.options.Client.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return nil, 0, fmt.Errorf("read pods of namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			in, err := a.options.InputOf(ctx, &list.Items[i])
			if err != nil {
				return nil, 0, err
			}
			if in.Policy.Off() {
				continue // since the namespaces were listed
			}
			p := Evaluate(in, &list.Items[i])
			if p.idle() {
				idle++
				continue
			}
			pods = append(pods, p)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return pods, idle, nil
		}
	}
}
