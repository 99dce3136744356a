package main

import (
	"context"
	"encoding/json"
	"fmt"

	patch "github.com/evanphx/json-patch/v5"
	"gomodules.xyz/jsonpatch/v2"
	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Why objects are left alone that the core is not asked about.
const (
	whyNoPod = "no pod in it"
)

// engine asks the core about objects.
type engine struct {
	cluster   *cluster
	namespace string  // of objects that name none
	fixed     bool    // the user said so: another namespace in an object is a mistake
	server    *server // asked in the place of the core, where it is not nil
	decide    func(policies.Input) policies.Decision
}

// result is what becomes of one object.
type result struct {
	object
	decision policies.Decision
	template bool            // the decision is about the pods of the object's template
	after    json.RawMessage // nil: refused
}

// judge answers one object. A panic in the core ends this object only.
func (e *engine) judge(ctx context.Context, o object) (r result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errInternal, p)
		}
	}()
	if o.kind == "Pod" && o.apiVersion == "v1" {
		return e.pod(ctx, o)
	}
	if t, ok := templateOf(o.raw); ok {
		return e.workload(ctx, o, t)
	}
	alone := policies.Decision{Outcome: policies.LeftAlone, Would: policies.LeftAlone, Why: whyNoPod}
	return result{object: o, decision: alone, after: o.raw}, nil
}

func (e *engine) pod(ctx context.Context, o object) (result, error) {
	if err := e.place(&o); err != nil {
		return result{}, err
	}
	decision, after, err := e.rewrite(ctx, o.raw, o.namespace)
	return result{object: o, decision: decision, after: after}, err
}

// workload answers an object by the pod that its controller would create from its template.
func (e *engine) workload(ctx context.Context, o object, t template) (result, error) {
	if err := e.place(&o); err != nil {
		return result{}, err
	}
	r := result{object: o, template: true}
	raw := o.raw
	if o.builtIn() {
		violation, changed, err := e.checkTemplate(ctx, o)
		if err != nil {
			return r, err
		}
		if violation != nil {
			r.decision = e.refusal(o.namespace, *violation)
			return r, nil
		}
		raw = changed
		t, _ = templateOf(raw)
	}
	pod, err := t.pod(o)
	if err != nil {
		return r, err
	}
	decision, after, err := e.rewrite(ctx, pod, o.namespace)
	if r.decision = decision; err != nil || after == nil {
		return r, err
	}
	if decision.Outcome == policies.LeftAlone {
		r.after = raw
		return r, nil
	}
	r.after, err = t.graft(raw, after)
	return r, err
}

// checkTemplate looks for quantities that the API server refuses in a template, and returns the workload as the
// template entry of the webhook would have it.
func (e *engine) checkTemplate(ctx context.Context, o object) (*api.Violation, json.RawMessage, error) {
	if e.server != nil {
		return e.server.checkTemplate(ctx, o)
	}
	var tree map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(o.raw, &tree); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", o.kind, err)
	}
	violation, ops := policies.CheckTemplate(o.kind, tree, e.cluster.input(o.namespace).Policy)
	if violation != nil || len(ops) == 0 {
		return violation, o.raw, nil
	}
	raw, err := patched(o.raw, ops)
	return nil, raw, err
}

// rewrite asks the core about one pod and returns it as it comes out; nil where it is refused.
func (e *engine) rewrite(ctx context.Context, raw json.RawMessage, namespace string) (policies.Decision, json.RawMessage, error) {
	if e.server != nil {
		return e.server.pod(ctx, raw, namespace)
	}
	in := e.cluster.input(namespace)
	pod, violation, err := promise.DecodePod(raw)
	if err != nil {
		return policies.Decision{}, nil, err
	}
	if violation != nil {
		return unreadable(in, *violation, raw)
	}
	in.Pod = pod.Pod
	in.Explain = true
	decision := e.decide(in)
	switch decision.Outcome {
	case policies.Refused:
		return decision, nil, nil
	case policies.Rewritten, policies.Voided:
		after, err := patched(raw, promise.Patch(pod.Tree, pod.Pod, decision.Rewrite(pod.Pod)))
		return decision, after, err
	}
	return decision, raw, nil
}

// place settles the namespace of an object.
func (e *engine) place(o *object) error {
	if o.namespace == "" {
		o.namespace = e.namespace
	}
	if e.fixed && o.namespace != e.namespace {
		return fmt.Errorf("it names namespace %q, and -n says %q: leave -n out, or make them agree", o.namespace, e.namespace)
	}
	return nil
}

// refusal is a decision that holds whatever the enforcementMode: the API server itself would refuse.
func (e *engine) refusal(namespace string, v api.Violation) policies.Decision {
	d := policies.Decision{Outcome: policies.Refused, Would: policies.Refused, Violations: []api.Violation{v}}
	if e.server != nil {
		return d
	}
	if p := e.cluster.input(namespace).Policy; p != nil {
		d.Policy, d.Mode = p.Name, p.EnforcementMode
	}
	return d
}

// unreadable answers a pod that is beyond the bounds of what is parsed, as the namespace's enforcementMode has it.
func unreadable(in policies.Input, v api.Violation, raw json.RawMessage) (policies.Decision, json.RawMessage, error) {
	d := policies.Deny(in, v)
	if d.Outcome == policies.Refused {
		return d, nil, nil
	}
	return d, raw, nil
}

// patched applies operations to raw. What they do not name stays as it is written.
func patched(raw json.RawMessage, ops []jsonpatch.Operation) (json.RawMessage, error) {
	text, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("%w: encode patch: %w", errInternal, err)
	}
	decoded, err := patch.DecodePatch(text)
	if err != nil {
		return nil, fmt.Errorf("%w: read patch: %w", errInternal, err)
	}
	after, err := decoded.Apply(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: apply patch: %w", errInternal, err)
	}
	return after, nil
}
