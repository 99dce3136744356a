package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/policies"
)

// handlerPolicies is the handler's name in metrics, whyWritten the reason of writes that it lets pass.
const (
	handlerPolicies = "policies"
	whyWritten      = "policy written"
)

// Policies is the validating handler of policy ConfigMaps. It refuses what would be a broken policy, and warns of what
// is legal and hardly meant. It is the first line only: whatever passes while it is down is held by the same rules when
// it is read.
type Policies struct {
	cluster *Cluster
	metrics *Metrics
}

// NewPolicies makes the handler for the policies of a cluster.
func NewPolicies(cluster *Cluster, metrics *Metrics) *Policies {
	return &Policies{cluster: cluster, metrics: metrics}
}

// findings are what is wrong with a write.
type findings struct {
	problems []error // any refuses it
	warnings []string
	absent   []string // namespaces that are named and not in the cache
}

func (f *findings) warn(format string, args ...any) {
	f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
}

// change is what a request does to a ConfigMap. Either may be nil.
type change struct {
	before, after *corev1.ConfigMap
}

// Handle implements admission.Handler.
func (p *Policies) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Kind != (metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) || req.SubResource != "" {
		return unanswered(http.StatusBadRequest, fmt.Errorf("only ConfigMaps of v1 are reviewed here, not %s", req.Kind.Kind))
	}
	c, err := changeOf(req)
	if err != nil {
		return unanswered(http.StatusBadRequest, err)
	}
	if c.leavesThePolicy() {
		return admission.Allowed("")
	}
	snapshot := p.cluster.snapshot.Load()
	if snapshot == nil {
		return unanswered(http.StatusServiceUnavailable, p.cluster.Ready())
	}
	found, err := p.judge(ctx, snapshot, c)
	if err != nil {
		return unanswered(http.StatusServiceUnavailable, err)
	}
	return p.respond(ctx, req, found)
}

// changeOf reads both sides of a request.
func changeOf(req admission.Request) (c change, err error) {
	if req.Operation != admissionv1.Create && len(req.OldObject.Raw) > 0 {
		c.before = &corev1.ConfigMap{}
		err = json.Unmarshal(req.OldObject.Raw, c.before)
	}
	if req.Operation != admissionv1.Delete {
		if len(req.Object.Raw) == 0 {
			return c, errors.New("the request holds no object")
		}
		c.after = &corev1.ConfigMap{}
		err = errors.Join(err, json.Unmarshal(req.Object.Raw, c.after))
	}
	for _, m := range []*corev1.ConfigMap{c.before, c.after} {
		if m != nil {
			m.Namespace = req.Namespace
		}
	}
	return c, err
}

// leavesThePolicy says that the write touches nothing that is read: finalizers, owners and annotations are never held
// up by a document that is no longer good.
func (c change) leavesThePolicy() bool {
	switch {
	case c.after == nil || c.before == nil:
		return c.after == c.before
	case c.after.DeletionTimestamp != nil:
		return true
	}
	return maps.Equal(c.before.Data, c.after.Data) && maps.EqualFunc(c.before.BinaryData, c.after.BinaryData, bytes.Equal) &&
		c.before.Labels[policies.LabelPolicy] == c.after.Labels[policies.LabelPolicy]
}

// judge finds what is wrong with a change. Its error says that it cannot be told now.
func (p *Policies) judge(ctx context.Context, s *Snapshot, c change) (found findings, err error) {
	was, _ := p.place(c.before)
	place, why := p.place(c.after)
	if why != "" {
		found.warn("ConfigMap %s/%s: %s", c.after.Namespace, c.after.Name, why)
	}
	a := authorityChange{snapshot: s, namespaces: p.cluster.namespaces()}
	switch {
	case place == policies.PlaceAuthority:
		a.written(c, was == policies.PlaceAuthority, &found)
		p.missing(ctx, &found)
	case was == policies.PlaceAuthority:
		a.deleted(c.before, &found)
	case place == policies.PlaceTenant:
		err = p.tenant(ctx, s, c.after, &found)
	case was == policies.PlaceTenant:
		err = p.tenantDeleted(ctx, s, c.before, &found)
	}
	return found, err
}

// missing warns of namespaces that do not exist. Of those that the cache does not have, the first are looked up: a policy
// is often written right after its namespace.
func (p *Policies) missing(ctx context.Context, found *findings) {
	var missing []string
	for _, name := range found.absent[:min(len(found.absent), maxNamed)] {
		if _, err := p.cluster.namespace(ctx, name); apierrors.IsNotFound(err) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		found.warn("namespaces.names: there is no %s yet", named(missing))
	}
}

func (p *Policies) place(m *corev1.ConfigMap) (policies.Place, string) {
	if m == nil {
		return policies.PlaceNone, ""
	}
	return policies.PlaceOf(m, p.cluster.system)
}

// tenant holds a tenant's own document against the policy of its namespace.
func (p *Policies) tenant(ctx context.Context, s *Snapshot, m *corev1.ConfigMap, found *findings) error {
	document := policies.ReadTenantDocument(m)
	if document.Policy == nil {
		found.problems = document.Problems
		return nil
	}
	in, err := p.authority(ctx, s, m.Namespace)
	switch {
	case err != nil:
		return err
	case in.PolicyError != nil:
		found.warn("namespace %s has no policy that can be used now, so this document was not held against it: %v", m.Namespace, in.PolicyError)
		return nil
	case in.Policy == nil:
		found.warn("no gpuslice policy governs namespace %s: a tenant's own document only tightens one, so nothing is decided by it", m.Namespace)
		return nil
	}
	for _, problem := range policies.Widenings(in.Policy, document.Policy) {
		found.problems = append(found.problems, fmt.Errorf("data[%s]: %w", policies.PolicyKey, problem))
	}
	return nil
}

func (p *Policies) tenantDeleted(ctx context.Context, s *Snapshot, m *corev1.ConfigMap, found *findings) error {
	in, err := p.authority(ctx, s, m.Namespace)
	if err == nil && in.Policy != nil {
		found.warn("namespace %s loses its own limits and quota; policy %s alone holds there", m.Namespace, in.Policy.Name)
	}
	return err
}

// authority is what governs a namespace without the tenant's own document.
func (p *Policies) authority(ctx context.Context, s *Snapshot, namespace string) (policies.Input, error) {
	ns, err := p.cluster.namespace(ctx, namespace)
	if err != nil {
		return policies.Input{}, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	return s.authority(policies.Namespace{Name: ns.Name, Labels: ns.Labels}), nil
}

// respond answers, counts and logs.
func (p *Policies) respond(ctx context.Context, req admission.Request, found findings) admission.Response {
	d, response := leftAlone(whyWritten), admission.Allowed("")
	if len(found.problems) > 0 {
		d = policies.Decision{Outcome: policies.Refused, Would: policies.Refused, Violations: []policies.Violation{{Rule: policies.RulePolicy}}}
		response = refusePolicy(req.Namespace+"/"+req.Name, found.problems)
	}
	response.Warnings = warnings(found.warnings)
	p.metrics.decided(handlerPolicies, d)
	logf.FromContext(ctx).Info("policy reviewed", "operation", req.Operation, "outcome", d.Outcome, "problems", len(found.problems), "warnings", len(found.warnings))
	return response
}
