package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/finding"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Verify tries a governed namespace by dry-runs, and says what came of them. namespace "": the first that is enforced.
// What has to come out is what the core says of the same pod.
func Verify(ctx context.Context, client kubernetes.Interface, f *Facts, namespace string) []finding.Finding {
	t := trial{ctx: ctx, client: client, facts: f}
	g, problem := choose(f, namespace)
	if problem != nil {
		problem.Check = "namespace"
		return []finding.Finding{*problem}
	}
	t.rewritten(g)
	t.refused(g)
	return t.found
}

// choose finds the namespace to try.
func choose(f *Facts, namespace string) (Governed, *finding.Finding) {
	if f.unread(whatPolicies) || f.unread(whatNamespaces) || f.unread(whatNodes) {
		return Governed{}, unseen(f)
	}
	governed := f.Governed()
	var names []string
	for _, g := range governed {
		names = append(names, g.Name)
	}
	if namespace != "" {
		if i := slices.Index(names, namespace); i >= 0 {
			return governed[i], nil
		}
		none := finding.New(finding.Problem, "no policy gives pods of namespace %s slices, so nothing can be tried there", namespace).
			With(object("namespace", "", f.System), "governed namespaces", someOf(names)).MendBy("gpuslice verify -n NAMESPACE, with one that is governed")
		return Governed{}, &none
	}
	for _, g := range governed {
		if g.Input.Policy.EnforcementMode == config.EnforceFull {
			return g, nil
		}
	}
	if len(governed) > 0 {
		return governed[0], nil
	}
	none := finding.New(finding.Problem, "no namespace is governed by a policy, so nothing can be tried").With(object("namespace", "", f.System), "policies", decimal(len(f.Policies)))
	return Governed{}, &none
}

// unseen says that it is not known what has to come out.
func unseen(f *Facts) *finding.Finding {
	none := finding.New(finding.Problem, "policies, namespaces or nodes may not be read, so it is not known what has to come out")
	for _, u := range f.Unread {
		none = none.With("api server", u.What, u.Err.Error())
	}
	none = none.MendBy("ask as somebody who may read them; gpuslice render --server -f FILE -n NAMESPACE tries a pod of your own")
	return &none
}

func someOf(names []string) string {
	const shown = 10
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > shown:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

// trial tries pods in one namespace.
type trial struct {
	ctx    context.Context
	client kubernetes.Interface
	facts  *Facts
	found  []finding.Finding
}

func (t *trial) say(check string, f finding.Finding) {
	f.Check = check
	t.found = append(t.found, f)
}

// create creates a pod without storing it.
func (t *trial) create(pod *corev1.Pod) (*corev1.Pod, error) {
	return t.client.CoreV1().Pods(pod.Namespace).Create(t.ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// rewritten tries a pod that has to come out in a slice.
func (t *trial) rewritten(g Governed) {
	const check = "rewritten"
	where := object("namespace", "", g.Name)
	pod, wanted, ok := Sample(g)
	if !ok {
		t.say(check, finding.New(finding.Problem, "no pod that asks for the least gets a slice in namespace %s", g.Name).
			With(where, "policy", g.Input.Policy.Name).With(where, "answer", answer(wanted)).
			MendBy("gpuslice doctor, which says what pools there are"))
		return
	}
	came, err := t.create(pod)
	if err != nil {
		t.say(check, finding.New(finding.Problem, "a pod that has to come out in a slice was refused").With(where, "dry-run", err.Error()).
			MendBy("kubectl -n %s logs deployment/gpuslice-webhook", t.facts.System))
		return
	}
	promise, err := promise.Decode(came.Annotations[api.AnnotationPromise])
	audit := g.Input.Policy.EnforcementMode == config.EnforceAudit
	switch {
	case err != nil && audit:
		t.say(check, finding.New(finding.Note, "namespace %s is in audit: nothing is rewritten there", g.Name).With("policy/"+g.Input.Policy.Name, "enforcementMode", string(config.EnforceAudit)))
	case err != nil:
		t.say(check, finding.New(finding.Problem, "a pod that has to come out in a slice came out as it was: the API server does not reach the webhook, or leaves the namespace out").
			With(where, "dry-run metadata.annotations["+api.AnnotationPromise+"]", "missing").
			MendBy("see webhooks, authority and replicas below; kubectl get --raw /metrics | grep apiserver_admission_webhook_fail_open_count says whether the API server was refused"))
	case promise.Strategy != wanted.Promise.Strategy || promise.Pools[0] != wanted.Promise.Pools[0]:
		t.say(check, finding.New(finding.Warning, "a pod came out in a slice, but not in the one that policies and nodes tell of: replicas have not seen them yet, or are of another version").
			With(where, "dry-run", given(promise)).With(where, "expected", given(wanted.Promise)))
	default:
		t.say(check, finding.New(finding.OK, "a pod of namespace %s comes out in a slice", g.Name).With(where, "dry-run", given(promise)).
			With("policy/"+promise.Policy, "enforcement planned", string(promise.Planned.Tier)))
	}
}

// given says in a few words what a pod got.
func given(p *promise.Promise) string {
	var sizes []string
	for _, c := range p.Containers {
		sizes = append(sizes, c.Slice.Human())
	}
	return fmt.Sprintf("%s by %s on %s", strings.Join(sizes, ", "), p.Strategy, p.Pools[0])
}

func answer(d policies.Decision) string {
	if text := d.Message(); text != "" {
		return text
	}
	return string(d.Would) + ": " + d.Why
}

// refused tries a pod that has to be refused, in the webhook's own words.
func (t *trial) refused(g Governed) {
	const check = "refused"
	where := object("namespace", "", g.Name)
	pod, wanted := Refusable(g)
	_, err := t.create(pod)
	said, answered := errors.AsType[*apierrors.StatusError](err)
	mode := g.Input.Policy.EnforcementMode
	switch {
	case err == nil && wanted.Outcome != policies.Refused:
		t.say(check, finding.New(finding.Note, "namespace %s is in %s: nothing is refused there", g.Name, mode).With("policy/"+g.Input.Policy.Name, "enforcementMode", string(mode)))
	case err == nil:
		t.say(check, finding.New(finding.Problem, "a pod that has to be refused passes").With(where, "dry-run", "created").With(where, "expected", wanted.Message()).
			MendBy("see webhooks, authority and replicas below"))
	case !answered || !strings.Contains(said.Status().Message, wanted.Message()) || wanted.Message() == "":
		t.say(check, finding.New(finding.Problem, "a pod that has to be refused by gpuslice was refused for another reason").With(where, "dry-run", err.Error()).With(where, "expected", wanted.Message()))
	default:
		t.say(check, finding.New(finding.OK, "a pod of namespace %s that asks for no size is refused", g.Name).With(where, "dry-run", wanted.Message()))
	}
}
