package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/cmd/client/preview"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// auditor evaluates living objects as if they were created again.
type auditor struct {
	client   kubernetes.Interface
	engine   *preview.Engine
	scope    installed.Scope
	system   string // the namespace of the installation
	enforced bool   // namespaces that are enforced already are audited too
	items    []audited
	errors   []manifest.Error
}

// audited is the effect of enforce on a namespace: an item of -o json.
type audited struct {
	Namespace string              `json:"namespace"`
	Policy    string              `json:"policy"`
	Mode      api.EnforcementMode `json:"mode"`
	Evaluated int                 `json:"evaluated"`
	Groups    []group             `json:"groups"`
	Claims    []member            `json:"claims,omitempty"` // that take GPUs and are no slices
}

// group holds objects that would have the same outcome for the same reason.
type group struct {
	IfEnforced policies.Outcome `json:"ifEnforced"`
	Rule       string           `json:"rule"`             // stable: the reason label of metrics
	Reason     string           `json:"reason,omitempty"` // of a denial, for people
	Count      int              `json:"count"`
	Examples   []member         `json:"examples"`
}

// member is one of a group.
type member struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Message string `json:"message,omitempty"`
}

// maxExamples bounds the members of a group that are shown.
const maxExamples = 3

// audit audits one namespace, but for its pods.
func (a *auditor) audit(ctx context.Context, namespace string) error {
	in := a.engine.Cluster.Input(namespace)
	item := audited{Namespace: namespace, Policy: in.Policy.Name, Mode: in.Policy.EnforcementMode, Groups: []group{}}
	objects, err := installed.Workloads(ctx, a.client, namespace)
	if err != nil {
		return err
	}
	for _, o := range objects {
		results, err := a.engine.Evaluate(ctx, o)
		if err != nil {
			a.fail(o, err)
			continue
		}
		for _, r := range results {
			item.add(outcomeOf(o.Kind, o.Name, r.Decision))
		}
	}
	item.Claims = members(a.engine.Cluster.ClaimProblems(namespace))
	a.items = append(a.items, item)
	return nil
}

// fail notes an object that cannot be evaluated.
func (a *auditor) fail(o manifest.Object, err error) {
	a.errors = append(a.errors, manifest.Error{At: o.At, Err: fmt.Errorf("%s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)})
}

// sort puts the groups first that matter most.
func (i *audited) sort() {
	slices.SortStableFunc(i.Groups, func(x, y group) int {
		return cmp.Or(cmp.Compare(severity(x.IfEnforced), severity(y.IfEnforced)),
			cmp.Compare(y.Count, x.Count), strings.Compare(x.Rule+x.Reason, y.Rule+y.Reason))
	})
}

const kindClaim = "ResourceClaim"

// members are claims with a problem, sorted.
func members(claims, templates map[string]string) (out []member) {
	for kind, all := range map[string]map[string]string{kindClaim: claims, "ResourceClaimTemplate": templates} {
		for name, problem := range all {
			out = append(out, member{kind, name, problem})
		}
	}
	slices.SortFunc(out, func(x, y member) int { return cmp.Or(strings.Compare(x.Kind, y.Kind), strings.Compare(x.Name, y.Name)) })
	return out
}

func severity(o policies.Outcome) int {
	return slices.Index([]policies.Outcome{policies.Denied, policies.Mutated, policies.DevicesHidden, policies.Unchanged}, o)
}

// outcome is the outcome of an object: a group of one.
type outcome struct {
	group group
	of    member
}

// outcomeOf is the outcome of a decision for an object.
func outcomeOf(kind, name string, d policies.Decision) outcome {
	o := outcome{group: group{IfEnforced: d.IfEnforced, Rule: d.Reason()}, of: member{Kind: kind, Name: name}}
	switch {
	case d.IfEnforced == policies.Denied && len(d.Violations) > 0:
		o.group.Reason, o.of.Message = d.Violations[0].Reason, d.Message()
	case d.IfEnforced == policies.Mutated:
		o.of.Message = preview.Summary(d)
	}
	return o
}

// add puts an object into its group.
func (i *audited) add(o outcome) {
	i.Evaluated++
	at := slices.IndexFunc(i.Groups, func(have group) bool {
		return have.IfEnforced == o.group.IfEnforced && have.Rule == o.group.Rule && have.Reason == o.group.Reason
	})
	if at < 0 {
		at = len(i.Groups)
		i.Groups = append(i.Groups, o.group)
	}
	found := &i.Groups[at]
	found.Count++
	if len(found.Examples) < maxExamples {
		found.Examples = append(found.Examples, o.of)
	}
}
