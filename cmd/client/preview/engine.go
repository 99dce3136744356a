package preview

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/rawpod"
)

// Engine evaluates objects.
type Engine struct {
	Cluster *clusters.Cluster

	namespace string  // of objects that name none
	fixed     bool    // namespace is the user's: another one in an object is a mistake
	server    *server // answers in the place of the core; nil: the core
	create    createFunc
}

// createFunc is policies.Create.
type createFunc func(policies.Input, rawpod.Raw, promise.Keys) (policies.Decision, []jsonpatch.Operation)

// New returns an engine that decides by the core.
func New(c *clusters.Cluster) *Engine {
	return &Engine{Cluster: c, namespace: metav1.NamespaceDefault, create: policies.Create}
}

// Evaluate finds the decision on one object: a result for each of its pod templates, or one. A panic in the core ends
// this object only.
func (e *Engine) Evaluate(ctx context.Context, o manifest.Object) (all []Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", cli.ErrInternal, p)
		}
	}()
	if o.Kind == "Pod" && o.APIVersion == "v1" {
		return e.pod(ctx, o)
	}
	templates, err := manifest.Templates(o)
	if err != nil {
		return nil, err
	}
	switch {
	case len(templates) > 0 && !o.BuiltIn() && slices.ContainsFunc(templates, func(t manifest.Template) bool { return !t.Readable() }):
		return notJudged(o, whyOtherShape), nil
	case len(templates) > 0:
		return e.workload(ctx, o, templates)
	case o.RunsPods() || manifest.NamesGPU(o):
		return notJudged(o, whyNoTemplate), nil
	}
	return notJudged(o, whyNoPod), nil
}

// notJudged is the result of an object without a pod that could be judged.
func notJudged(o manifest.Object, why string) []Result {
	return []Result{{Object: o, After: o.Raw,
		Decision: policies.Decision{Outcome: policies.Unchanged, IfEnforced: policies.Unchanged, UnchangedReason: why}}}
}

func (e *Engine) pod(ctx context.Context, o manifest.Object) ([]Result, error) {
	if err := e.place(&o); err != nil {
		return nil, err
	}
	all := []Result{{Object: o}}
	err := e.rewrite(ctx, o.Raw, o.Namespace, &all[0])
	e.warnOfQuota(all, func(int) int { return 1 })
	return all, err
}

// workload evaluates an object by the pods that its controller would create from its templates.
func (e *Engine) workload(ctx context.Context, o manifest.Object, templates []manifest.Template) ([]Result, error) {
	if err := e.place(&o); err != nil {
		return nil, err
	}
	after := o.Raw
	if problem := manifest.LabelProblem(o.Labels); problem != "" && e.server == nil {
		violation := api.Violation{Rule: ruleCluster, Reason: "Kubernetes denies a label", Detail: problem}
		return []Result{{Object: o, template: true, Decision: e.denial(o.Namespace, violation)}}, nil
	}
	if o.BuiltIn() {
		violation, changed, err := e.checkTemplate(ctx, o)
		if err != nil {
			return nil, err
		}
		if violation != nil {
			return []Result{{Object: o, template: true, Decision: e.denial(o.Namespace, *violation)}}, nil
		}
		if after = changed; !bytes.Equal(changed, o.Raw) {
			written := o
			written.Raw = changed
			if templates, err = manifest.Templates(written); err != nil {
				return nil, err
			}
		}
	}
	all := make([]Result, len(templates))
	for i, t := range templates {
		r := &all[i]
		*r = Result{Object: o, template: true, follows: i > 0}
		if !o.BuiltIn() {
			r.Template = t.Path()
		}
		err := e.fromTemplate(ctx, r, t)
		switch {
		case err != nil:
			return nil, err
		case r.After == nil:
			after = nil
		case after != nil && r.Decision.Outcome != policies.Unchanged:
			if after, err = t.Graft(after, r.After); err != nil {
				return nil, err
			}
		}
	}
	e.warnOfQuota(all, func(i int) int { return templates[i].Pods() })
	for i := range all {
		all[i].After = after
	}
	return all, nil
}

// fromTemplate evaluates the pod of one template.
func (e *Engine) fromTemplate(ctx context.Context, r *Result, t manifest.Template) error {
	pod, err := t.Pod(r.Object)
	if err != nil {
		return err
	}
	if err := e.rewrite(ctx, pod, r.Namespace, r); err != nil {
		return err
	}
	if t.Partial() {
		r.Decision.Warnings = append(r.Decision.Warnings,
			"the controller of "+r.Kind+" completes this container: it is judged by what is written here, and printed as it is")
	}
	r.Decision.Warnings = append(r.Decision.Warnings, e.elsewhere(pod, r)...)
	if warning := e.rollout(r); warning != "" {
		r.Decision.Warnings = append(r.Decision.Warnings, warning)
	}
	return nil
}

// checkTemplate looks for quantities that the API server denies in a template, and returns the workload as the
// template entry of the webhook would have it.
func (e *Engine) checkTemplate(ctx context.Context, o manifest.Object) (*api.Violation, json.RawMessage, error) {
	if e.server != nil {
		return e.server.checkTemplate(ctx, o)
	}
	var tree map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(o.Raw, &tree); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", o.Kind, err)
	}
	violation, ops := policies.CheckTemplate(e.Cluster.Input(o.Namespace).Policy, o.Kind, tree)
	if violation != nil || len(ops) == 0 {
		return violation, o.Raw, nil
	}
	raw, err := manifest.Patch(o.Raw, ops)
	return nil, raw, err
}

// rewrite decides about one pod. After is the pod as it comes out; nil if it is denied. Of one that exceeds the bounds
// on parsed input, the namespace's enforcementMode decides.
func (e *Engine) rewrite(ctx context.Context, raw json.RawMessage, namespace string, r *Result) (err error) {
	if e.server != nil {
		r.Decision, r.After, err = e.server.pod(ctx, raw, namespace)
		return err
	}
	pod, violation, err := rawpod.Decode(raw)
	if err != nil {
		return err
	}
	if violation != nil {
		if r.Decision = e.Cluster.Input(namespace).Deny(*violation); r.Decision.Outcome != policies.Denied {
			r.After = raw
		}
		return nil
	}
	if problem := manifest.LabelProblem(pod.Pod.Labels); problem != "" {
		r.Decision = e.denial(namespace, api.Violation{Rule: ruleCluster, Reason: "Kubernetes denies a label", Detail: problem})
		return nil
	}
	in := e.Cluster.InputOf(namespace, pod.Pod)
	in.Explain = true
	decision, patch := e.create(in, pod, promise.Keys{})
	if r.Decision = decision; decision.Outcome == policies.Denied {
		return nil
	}
	if unread := e.Cluster.ClaimsUnread; unread != nil && len(pod.Pod.Spec.ResourceClaims) > 0 {
		r.Decision.Warnings = append(r.Decision.Warnings, unread.Error())
	}
	r.hold(in)
	r.After, err = manifest.Patch(raw, patch)
	return err
}

// place fills in the namespace of an object.
func (e *Engine) place(o *manifest.Object) error {
	if o.Namespace == "" {
		o.Namespace = e.namespace
	}
	if e.fixed && o.Namespace != e.namespace {
		return fmt.Errorf("it names namespace %q, and -n names %q: leave out -n, or make them agree", o.Namespace, e.namespace)
	}
	return nil
}

// denial is a decision that applies whatever the enforcementMode: the API server itself would deny the object.
func (e *Engine) denial(namespace string, v api.Violation) policies.Decision {
	d := policies.Decision{Outcome: policies.Denied, IfEnforced: policies.Denied, Violations: []api.Violation{v}}
	if e.server != nil {
		return d
	}
	if p := e.Cluster.Input(namespace).Policy; p != nil {
		d.Policy, d.Mode = p.Name, p.EnforcementMode
	}
	return d
}
