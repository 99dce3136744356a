package preview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// whyServer is why a pod is left alone by an API server.
const whyServer = "the cluster's webhooks write no promise on it"

// ruleCluster is the rule of denials that are Kubernetes' own.
const ruleCluster = "cluster"

// server answers by dry-run creates: the API server calls the installed webhooks, and stores nothing.
type server struct {
	client rest.Interface
	rights authorizationclient.SelfSubjectAccessReviewInterface
}

func newServer(c *kube.Connection) (*server, error) {
	config := rest.CopyConfig(c.Config)
	config.WarningHandler = rest.NoWarnings{} // they are part of the answer
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.GroupVersion = &metav1.Unversioned
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return &server{client, c.Client.AuthorizationV1().SelfSubjectAccessReviews()}, nil
}

// pod creates a pod without storing it, and reads the decision from the result.
func (s *server) pod(ctx context.Context, raw json.RawMessage, namespace string) (policies.Decision, json.RawMessage, error) {
	after, warnings, err := s.create(ctx, corev1.SchemeGroupVersion.WithResource("pods"), namespace, raw)
	d := policies.Decision{Outcome: policies.Unchanged, IfEnforced: policies.Unchanged, UnchangedReason: whyServer, Warnings: warnings}
	if denial, ok := denied(err); ok {
		d.Outcome, d.IfEnforced, d.UnchangedReason, d.Violations = policies.Denied, policies.Denied, "", []api.Violation{denial}
		return d, nil, nil
	}
	if err != nil {
		return d, nil, err
	}
	if after, err = withoutServerDefaults(raw, after); err != nil {
		return d, nil, err
	}
	promised, err := promiseOf(after)
	if promised == nil || err != nil {
		return d, after, err
	}
	d.Outcome, d.IfEnforced, d.UnchangedReason = policies.Mutated, policies.Mutated, ""
	d.Promise, d.Planned, d.Policy = promised, &promised.Planned, promised.Policy
	return d, after, nil
}

// checkTemplate creates a workload without storing it: the API server validates its template, and webhooks may rewrite
// it.
func (s *server) checkTemplate(ctx context.Context, o manifest.Object) (*api.Violation, json.RawMessage, error) {
	version, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return nil, nil, err
	}
	_, _, err = s.create(ctx, version.WithResource(strings.ToLower(o.Kind)+"s"), o.Namespace, o.Raw)
	if denial, ok := denied(err); ok {
		return &denial, nil, nil
	}
	return nil, o.Raw, err
}

// create posts an object as a dry-run. It goes under a generated name, since one that exists cannot be created again,
// and comes back under its own.
func (s *server) create(ctx context.Context, resource schema.GroupVersionResource,
	namespace string, raw json.RawMessage) (json.RawMessage, []string, error) {
	nameless, name, err := withoutName(raw)
	if err != nil {
		return nil, nil, err
	}
	var collected warnings
	result := s.client.Post().AbsPath(root(resource.GroupVersion()), "namespaces", namespace, resource.Resource).
		Param("dryRun", metav1.DryRunAll).
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").
		WarningHandler(&collected).Body([]byte(nameless)).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, collected.texts, s.failure(ctx, err, resource, namespace)
	}
	stored, err := result.Raw()
	if err != nil {
		return nil, collected.texts, fmt.Errorf("dry-run in namespace %s: %w", namespace, err)
	}
	after, err := restoreName(stored, name)
	return after, collected.texts, err
}

// root is the path below which the API server serves a group.
func root(v schema.GroupVersion) string {
	if v.Group == "" {
		return "/api/" + v.Version
	}
	return "/apis/" + v.String()
}

// failure is why a dry-run failed. A missing right to create such objects is no answer about this one.
func (s *server) failure(ctx context.Context, err error, resource schema.GroupVersionResource, namespace string) error {
	err = fmt.Errorf("dry-run in namespace %s: %w", namespace, err)
	if !apierrors.IsForbidden(err) {
		return err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create",
			Group: resource.Group, Resource: resource.Resource, Namespace: namespace},
	}}
	answer, failed := s.rights.Create(ctx, review, metav1.CreateOptions{})
	if failed == nil && !answer.Status.Allowed {
		return fmt.Errorf("%w: %w", errNoRight, err)
	}
	return err
}

// errNoRight is returned if the user may not create such objects.
var errNoRight = errors.New("you may not create it")

// denied reports whether an error is the cluster's denial of the object, and not a failure to get an answer.
func denied(err error) (api.Violation, bool) {
	if err == nil || errors.Is(err, errNoRight) || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return api.Violation{}, false
	}
	return api.Violation{Rule: ruleCluster, Reason: "denied by the cluster", Detail: status(err)}, true
}

// status is the API server's own message.
func status(err error) string {
	if answer, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return answer.Status().Message
	}
	return err.Error()
}

// promiseOf reads a pod's promise; nil: none.
func promiseOf(raw json.RawMessage) (*promise.Promise, error) {
	var pod struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &pod); err != nil {
		return nil, fmt.Errorf("read the API server's answer: %w", err)
	}
	text := pod.Metadata.Annotations[api.AnnotationPromise]
	if text == "" {
		return nil, nil
	}
	return promise.Decode(text)
}

// warnings collects the warnings of one request.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == 299 && text != "" {
		w.texts = append(w.texts, text)
	}
}
