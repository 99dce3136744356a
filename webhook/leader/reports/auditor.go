package reports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
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
	"github.com/gpuslice/gpuslice/webhook/governed"
)

// Options configure an Auditor.
type Options struct {
	Client   kubernetes.Interface
	Interval time.Duration
	// Ready returns why the cluster is not known yet; nil: it is.
	Ready func() error
	// Configurations are the mutating webhook configurations, which say of which namespaces pods are reviewed.
	Configurations []string
	Governed       governed.Source
	// InputOf returns the input of a decision about a pod.
	InputOf func(ctx context.Context, pod *corev1.Pod) (policies.Input, error)
	// QuotaOf returns the limits of a namespace's pods.
	QuotaOf func(policies.Input) quota.Quota
	Log     logr.Logger
}

// Auditor writes Reports at intervals, in one replica at a time.
type Auditor struct {
	options Options
	reader  Reader
	store   Store
	absent  bool // the API was, when last looked for
}

// podsPerPage is few: the webhook, which serves in the same process, has little memory.
const podsPerPage = 50

// NewAuditor returns an Auditor.
func NewAuditor(o Options) *Auditor {
	client := o.Client.Discovery().RESTClient()
	return &Auditor{options: o, reader: Reader{Client: client, InputOf: o.InputOf, PageSize: podsPerPage}, store: Store{client}}
}

// firstAudit is how long a new leader waits: the one before may have audited a moment ago,
// and replicas of a rollout lead one after the other.
const firstAudit = 5 * time.Minute

// A failed audit is repeated after retryFirst, then each time after twice as long, up to the interval or retryMost.
const (
	retryFirst = 30 * time.Second
	retryMost  = 10 * time.Minute
)

// Run audits until ctx ends.
func (a *Auditor) Run(ctx context.Context) error {
	wait, retry := firstAudit, retryFirst
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		err := a.options.Ready()
		if err == nil {
			err = a.audit(ctx)
		}
		if err == nil {
			wait, retry = a.options.Interval, retryFirst
			continue
		}
		wait = min(retry, a.options.Interval, retryMost)
		retry = min(2*retry, retryMost)
		if ctx.Err() == nil {
			a.options.Log.Error(err, "cannot audit", "retryAfter", wait.String())
		}
	}
}

// ErrPanic marks an evaluation that panicked. The error's first line names the object, those after it are the stack.
var ErrPanic = errors.New("panic")

// recovered makes a panic an error: an odd pod must not stop the webhook that serves in the same process.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v\n%s", ErrPanic, p, debug.Stack())
	}
}

// audit writes the Report of each namespace that is governed and not enforced.
func (a *Auditor) audit(ctx context.Context) (err error) {
	defer recovered(&err)
	served, err := a.store.Served(ctx)
	if err != nil {
		return err
	}
	if !served {
		if !a.absent {
			a.options.Log.Info("no reports are written: the cluster has no API " +
				APIVersion + "; install the CustomResourceDefinitions of openreports.io")
		}
		a.absent = true
		return nil
	}
	a.absent = false
	all, err := a.governed(ctx)
	if err != nil {
		return err
	}
	var errs []error
	kept, budgets := map[string]bool{}, map[string][]governed.Namespace{}
	for _, g := range all {
		// Also if the audit fails: the last findings are still there.
		kept[g.Name] = g.Policy == nil || audited(g)
		if g.Policy != nil {
			key := g.Policy.Quota.BudgetKey(g.Name)
			budgets[key] = append(budgets[key], g)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(budgets)) {
		if slices.ContainsFunc(budgets[key], audited) {
			errs = append(errs, a.report(ctx, budgets[key]))
		}
	}
	return errors.Join(append(errs, a.store.DeleteExcept(ctx, func(namespace string) bool { return kept[namespace] }))...)
}

// audited reports whether a governed namespace has a Report.
func audited(g governed.Namespace) bool {
	return g.Policy != nil && g.Policy.EnforcementMode != api.EnforceFull
}

// governed are the namespaces whose pods the API server has reviewed.
func (a *Auditor) governed(ctx context.Context) ([]governed.Namespace, error) {
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
			if selector, err := metav1.LabelSelectorAsSelector(w.NamespaceSelector); err == nil &&
				w.NamespaceSelector != nil && w.Name == webhookOfPods {
				selectors = append(selectors, selector)
			}
		}
	}
	return slices.DeleteFunc(all, func(g governed.Namespace) bool {
		of := labels.Set{}
		maps.Copy(of, g.Labels)
		of[corev1.LabelMetadataName] = g.Name
		return !slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(of) })
	}), nil
}

// webhookOfPods is the webhook by which pods get slices.
const webhookOfPods = "pods." + api.Domain

// report audits the namespaces that share a budget, over all of which their quota is counted.
func (a *Auditor) report(ctx context.Context, shared []governed.Namespace) (err error) {
	defer recovered(&err)
	var pods []Pod
	subjects := map[string][]Subject{}
	for _, g := range shared {
		found, others, err := a.pods(ctx, g.Name)
		if err != nil {
			return err
		}
		pods, subjects[g.Name] = append(pods, found...), others
	}
	if err := WithinQuota(pods, a.quotaOf); err != nil {
		return err
	}
	for i := range pods {
		namespace := pods[i].Pod.Namespace
		subjects[namespace] = append(subjects[namespace], pods[i].subject)
	}
	var errs []error
	for _, g := range shared {
		if audited(g) {
			errs = append(errs, a.store.Apply(ctx, Of(g.Name, g.Policy.Name, subjects[g.Name], time.Now())))
		}
	}
	return errors.Join(errs...)
}

// pods evaluates the living pods of a namespace. others are those that no quota counts.
func (a *Auditor) pods(ctx context.Context, namespace string) (pods []Pod, others []Subject, err error) {
	err = a.reader.Each(ctx, namespace, func(p Pod) {
		switch {
		case p.Err != nil:
			a.options.Log.Error(p.Err, "cannot evaluate a pod", "namespace", namespace, "pod", p.Pod.Name)
			others = append(others, p.subject)
		case p.idle():
			others = append(others, Subject{Result: skipped})
		default:
			p.Forget()
			pods = append(pods, p)
		}
	})
	return pods, others, err
}

// quotaOf is the quota of pods.
func (a *Auditor) quotaOf(in policies.Input) (quota.Quota, error) {
	enforced := *in.Policy
	enforced.EnforcementMode = api.EnforceFull
	in.Policy = &enforced
	return a.options.QuotaOf(in), nil
}
