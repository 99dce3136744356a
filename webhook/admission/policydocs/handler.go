// Package policydocs reviews policy documents as they are written.
package policydocs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
	"github.com/gpuslice/gpuslice/webhook/admission/watcher"
)

const (
	metricsHandler = "policies"       // the handler's name in metrics
	reasonWritten  = "policy written" // of writes that are admitted
	maxProblem     = 1024             // bytes of one problem, of which a document has 64 at most
)

// Handler is the validating handler of policy ConfigMaps. It denies a write that would be a broken policy, and warns
// about valid settings that are probably mistakes. It is the first line only: a policy that was written while it was
// down is checked by the same rules when it is read.
type Handler struct {
	cluster *watcher.Watcher
	system  string // the namespace of the authority's policies
	metrics *metrics.Metrics
}

// New makes the handler for the policies of a cluster, whose authority writes in the namespace system.
func New(of *watcher.Watcher, system string, counters *metrics.Metrics) *Handler {
	return &Handler{cluster: of, system: system, metrics: counters}
}

// findings are the problems of a write.
type findings struct {
	problems []error // any denies it
	warnings []string
	absent   []string // namespaces that are named and not in the cache
}

func (f *findings) warn(format string, args ...any) {
	f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
}

// change is a request's change of a ConfigMap. Either may be nil.
type change struct {
	before, after *corev1.ConfigMap
}

// Handle implements review.Handler.
func (h *Handler) Handle(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	if req.Kind != (metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) || req.SubResource != "" {
		return review.Answer{}, review.Faultf(http.StatusBadRequest, "only ConfigMaps of v1 are reviewed here, not %s", req.Kind.Kind)
	}
	c, err := changeOf(req)
	if err != nil {
		return review.Answer{}, review.Faultf(http.StatusBadRequest, "%v", err)
	}
	if c.keepsThePolicy() {
		return review.Answer{}, nil
	}
	snapshot, err := h.cluster.Snapshot()
	if err != nil {
		return review.Answer{}, review.Faultf(http.StatusServiceUnavailable, "%v", err)
	}
	found, err := h.check(ctx, snapshot, c)
	if err != nil {
		return review.Answer{}, review.Faultf(http.StatusServiceUnavailable, "%v", err)
	}
	return h.respond(ctx, req, found), nil
}

// changeOf reads both sides of a request.
func changeOf(req review.Request) (c change, err error) {
	if req.Operation != admissionv1.Create && len(req.OldObject.Raw) > 0 {
		c.before = &corev1.ConfigMap{}
		err = json.Unmarshal(req.OldObject.Raw, c.before)
	}
	if req.Operation != admissionv1.Delete {
		if len(req.Object.Raw) == 0 {
			return c, errors.New("the request has no object")
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

// keepsThePolicy reports whether the write touches nothing that is read: finalizers, owners and annotations are never held
// up by a document that is no longer good.
func (c change) keepsThePolicy() bool {
	switch {
	case c.after == nil || c.before == nil:
		return c.after == c.before
	case c.after.DeletionTimestamp != nil:
		return true
	}
	return maps.Equal(c.before.Data, c.after.Data) && maps.EqualFunc(c.before.BinaryData, c.after.BinaryData, bytes.Equal) &&
		c.before.Labels[api.LabelPolicy] == c.after.Labels[api.LabelPolicy]
}

// check finds the problems of a change. An error: it cannot be checked now.
func (h *Handler) check(ctx context.Context, s *cluster.Snapshot, c change) (found findings, err error) {
	was, _ := h.place(c.before)
	place, reason := h.place(c.after)
	if reason != "" {
		found.warn("ConfigMap %s/%s: %s", c.after.Namespace, c.after.Name, reason)
	}
	a := authorityChange{snapshot: s, namespaces: h.cluster.Namespaces().All()}
	switch {
	case place.Authority:
		a.written(c, was.Authority, &found)
		h.missing(ctx, &found)
	case was.Authority:
		a.lost(c.before.Namespace+"/"+c.before.Name, config.NewBook(s.PoliciesWithout(c.before.Name)), &found)
	case place.Tenant:
		err = h.tenant(ctx, s, c, &found)
	case was.Tenant:
		err = h.tenantDeleted(ctx, s, c.before, &found)
	}
	return found, err
}

// missing warns of namespaces that do not exist. Of those that the cache does not have, the first are looked up: a policy
// is often written right after its namespace.
func (h *Handler) missing(ctx context.Context, found *findings) {
	var missing []string
	for _, name := range found.absent[:min(len(found.absent), maxNamed)] {
		if _, err := h.cluster.Namespaces().Get(ctx, name); apierrors.IsNotFound(err) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		found.warn("namespaces.names: there is no %s yet", named(missing))
	}
}

func (h *Handler) place(m *corev1.ConfigMap) (config.Place, string) {
	if m == nil {
		return config.Place{}, ""
	}
	return config.PlaceOf(m, h.system)
}

// tenant checks a tenant's own document against the policy of its namespace.
func (h *Handler) tenant(ctx context.Context, s *cluster.Snapshot, c change, found *findings) error {
	m := c.after
	document := config.ReadTenantDocument(m)
	if document.Policy == nil {
		found.problems = document.Problems
		return nil
	}
	in, err := h.authority(ctx, s, m.Namespace)
	switch {
	case err != nil:
		return err
	case in.PolicyError != nil: // a tenant cannot repair the authority's policy
		found.warn("namespace %s has no policy that can be used now, so this document was not held against it: %v", m.Namespace, in.PolicyError)
		return nil
	case in.Policy == nil:
		found.warn("no gpuslice policy governs namespace %s: a tenant's own document only tightens one, so nothing is decided by it", m.Namespace)
		return nil
	}
	for _, problem := range in.Policy.TightenErrors(document.Policy) {
		found.problems = append(found.problems, fmt.Errorf("data[%s]: %w", api.PolicyKey, problem))
	}
	found.warnings = append(found.warnings, in.Policy.TightenWarnings(document.Policy)...)
	if c.before != nil {
		lowered(config.ReadTenantDocument(c.before).Policy, document.Policy, found)
	}
	return nil
}

func (h *Handler) tenantDeleted(ctx context.Context, s *cluster.Snapshot, m *corev1.ConfigMap, found *findings) error {
	in, err := h.authority(ctx, s, m.Namespace)
	if err == nil && in.Policy != nil {
		found.warn("namespace %s loses its own limits and quota; policy %s alone applies there", m.Namespace, in.Policy.Name)
	}
	return err
}

// authority is the policy of a namespace without the tenant's own document.
func (h *Handler) authority(ctx context.Context, s *cluster.Snapshot, namespace string) (policies.Input, error) {
	ns, err := h.cluster.Namespaces().Get(ctx, namespace)
	if err != nil {
		return policies.Input{}, err
	}
	return s.AuthorityInput(ns), nil
}

// respond answers, counts and logs.
func (h *Handler) respond(ctx context.Context, req review.Request, found findings) review.Answer {
	d := policies.Decision{Outcome: policies.Unchanged, IfEnforced: policies.Unchanged, UnchangedReason: reasonWritten}
	var answer review.Answer
	if len(found.problems) > 0 {
		d = policies.Decision{Outcome: policies.Denied, IfEnforced: policies.Denied, Violations: []api.Violation{{Rule: api.RulePolicy}}}
		answer.Denial = denial(req.Namespace, req.Name, found.problems)
	}
	answer.Warnings = review.Warnings(found.warnings)
	h.metrics.CountDecision(metricsHandler, d)
	logr.FromContextOrDiscard(ctx).Info("policy reviewed", "operation", req.Operation,
		"outcome", d.Outcome, "problems", len(found.problems), "warnings", len(found.warnings))
	return answer
}

// denial lists every problem, each on a line of its own and as a cause that tools can read.
func denial(namespace, name string, problems []error) *review.Denial {
	lines := []string{fmt.Sprintf("policy %s is not written, problems: %d", shorten.Line(namespace+"/"+name, maxProblem), len(problems))}
	d := &review.Denial{Reason: metav1.StatusReasonInvalid, Kind: "ConfigMap", Name: name}
	for _, problem := range problems {
		text := shorten.Line(problem.Error(), maxProblem)
		lines = append(lines, text)
		// kubectl prints FIELD: MESSAGE.
		cause := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "data[" + api.PolicyKey + "]", Message: text}
		if at, why, found := strings.Cut(text, ": "); found && strings.HasPrefix(at, "data") {
			cause.Field, cause.Message = at, why
		}
		d.Causes = append(d.Causes, cause)
	}
	d.Message = strings.Join(lines, "\n")
	return d
}
