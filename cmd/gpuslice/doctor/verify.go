package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

const verifyLong = `Prove through the API server that gpuslice answers: by a dry-run of a pod that has to come out in a slice, and of one that
has to be denied, in a governed namespace. Nothing is created. Then run the same checks of the installation as doctor:
webhook configurations and their authority, replicas, policies, priority.

The namespace is that of -n, else the first governed and enforced one that admits a slice now. A full quota is no problem:
its denial comes from gpuslice. It takes the right to create pods there, and to read policies and nodes, from which follows
what has to come out.
`

const verifyExample = `  # after an installation or an upgrade
  gpuslice verify

  # a namespace that was just put under a policy
  gpuslice verify -n team-a`

// Proof is something that verify can do in the place of dry-runs. Its flags say whether it is to.
type Proof interface {
	// Extend adds help and flags to verify.
	Extend(verify *cobra.Command)
	Wanted() bool
	// Run returns its findings about a namespace; "": the caller named none.
	Run(ctx context.Context, client kubernetes.Interface, f *Facts, namespace string, err io.Writer) []Finding
}

// NewVerify returns the command verify.
func NewVerify(s cli.Streams, proofs ...Proof) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "verify",
		Short:   "Prove by dry-runs that the webhook answers",
		Long:    verifyLong,
		Example: verifyExample,
		RunE: func(cmd *cobra.Command, _ []string) error {
			connection, facts, err := o.gather(cmd.Context(), s)
			if err != nil {
				return err
			}
			for _, p := range proofs {
				if p.Wanted() {
					return o.print(s, kindVerify, p.Run(cmd.Context(), connection.Client, facts, o.kube.Namespace, s.Err))
				}
			}
			return o.print(s, kindVerify, verify(cmd.Context(), connection.Client, facts, o.kube.Namespace))
		},
	}
	for _, p := range proofs {
		p.Extend(cmd)
	}
	cmd.Long += fmt.Sprintf(findingsHelp, kindVerify)
	o.register(cmd, s, "to try (default: the first that is governed and enforced)")
	return cmd
}

// verify tries a namespace and examines the installation.
func verify(ctx context.Context, client kubernetes.Interface, f *Facts, namespace string) []Finding {
	if !f.Installed() && !f.unread(whatWebhook) && !f.unread(whatWebhooks) {
		return []Finding{f.notInstalled(Problem)}
	}
	return append(tryNamespace(ctx, client, f, namespace), examineInstallation(f)...)
}

// shownNames are the governed namespaces that are named if -n names none of them.
const shownNames = 10

// tryNamespace tries a governed namespace by dry-runs, and reports the results. namespace "": the first that is
// enforced. The expected result is the core's decision about the same pod.
func tryNamespace(ctx context.Context, client kubernetes.Interface, f *Facts, namespace string) []Finding {
	candidates, problem := Choose(f, namespace)
	if problem != nil {
		problem.Check = "namespace"
		return []Finding{*problem}
	}
	t := trial{ctx: ctx, client: client, system: f.System}
	g, slice := t.slices(candidates)
	denial := t.denial(g)
	slice.Check, denial.Check = "slice", "denial"
	return []Finding{slice, denial}
}

// Choose finds the namespaces to try, at least one.
func Choose(f *Facts, namespace string) ([]Governed, *Finding) {
	if f.unread(whatPolicies) || f.unread(whatNamespaces) || f.unread(whatNodes) {
		return nil, unseen(f)
	}
	governed := f.Governed()
	var names []string
	for _, g := range governed {
		names = append(names, g.Name)
	}
	if namespace != "" {
		if i := slices.Index(names, namespace); i >= 0 {
			return governed[i : i+1], nil
		}
		return nil, new(newFinding(Problem, "no policy gives pods of namespace %s slices, so nothing can be tried there", namespace).
			With(object("namespace", "", f.System), "governed namespaces", cmp.Or(cli.First(shownNames, names), "none")).
			WithRemedy("gpuslice verify -n NAMESPACE, with one that is governed"))
	}
	if len(governed) == 0 {
		return nil, new(newFinding(Note, "no namespace is governed by a policy, so nothing can be tried").
			With(object("namespace", "", f.System), "policies", decimal(len(f.Policies))).
			WithRemedy("create a policy: a ConfigMap in namespace %s with the label gpuslice.dev/policy: \"true\"", f.System))
	}
	enforced := slices.DeleteFunc(slices.Clone(governed), func(g Governed) bool { return g.Input.Policy.EnforcementMode != api.EnforceFull })
	if len(enforced) == 0 {
		return governed[:1], nil
	}
	return enforced[:min(len(enforced), maxTried)], nil
}

// maxTried bounds how many namespaces are tried until one admits a slice.
const maxTried = 10

// unseen reports that the expected result is unknown.
func unseen(f *Facts) *Finding {
	none := newFinding(Problem, "policies, namespaces or nodes may not be read, so it is unknown what has to come out")
	for _, u := range f.Unread {
		none = none.With("api server", u.What, u.Err.Error())
	}
	return new(
		none.WithRemedy("run it as a user who may read them; gpuslice render --dry-run=server -f FILE -n NAMESPACE tries a pod of your own"))
}

// trial tries pods in one namespace.
type trial struct {
	ctx    context.Context
	client kubernetes.Interface
	system string
}

// create creates a pod without storing it.
func (t *trial) create(pod *corev1.Pod) (*corev1.Pod, error) {
	return t.client.CoreV1().Pods(pod.Namespace).Create(t.ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// slices tries the namespaces until one admits a slice, and returns the one that it reports on. Quotas, limits and other
// webhooks may deny a slice in one namespace without saying anything about the installation.
func (t *trial) slices(candidates []Governed) (best Governed, reported Finding) {
	for i, g := range candidates {
		found, denied := t.slice(g)
		if !denied || i == 0 || found.Level == OK && reported.Level != OK {
			best, reported = g, found
		}
		if !denied {
			break
		}
	}
	return best, reported
}

// slice tries a pod that has to come out in a slice. denied: another namespace may admit one.
func (t *trial) slice(g Governed) (found Finding, denied bool) {
	where := object("namespace", "", g.Name)
	pod, wanted, ok := Sample(g)
	if !ok {
		return newFinding(Problem, "not even the smallest pod gets a slice in namespace %s", g.Name).
			With(where, "policy", g.Input.Policy.Name).With(where, "answer", Answer(wanted)).
			WithRemedy("gpuslice doctor, which lists the pools"), true
	}
	came, err := t.create(pod)
	if status, answered := errors.AsType[*apierrors.StatusError](err); answered && quotaDenial.MatchString(err.Error()) {
		return newFinding(OK, "gpuslice answers: the quota of namespace %s has no room for a slice", g.Name).
			With(where, "dry-run", err.Error()), true
	} else if err != nil {
		return newFinding(Problem, "a pod that has to come out in a slice was denied").With(where, "dry-run", err.Error()).
			WithRemedy("kubectl -n %s logs deployment/gpuslice-webhook", t.system), answered && status.Status().Code < http.StatusInternalServerError
	}
	return t.sliced(g, came, wanted), false
}

// quotaDenial is a denial by gpuslice's validating webhook, which answers after the mutating one.
var quotaDenial = regexp.MustCompile(`admission webhook "[a-z-]+\.gpuslice\.dev" denied the request: exceeded quota: `)

// sliced reports the result of a pod that is expected to get a slice, and was not denied.
func (t *trial) sliced(g Governed, came *corev1.Pod, wanted policies.Decision) Finding {
	where := object("namespace", "", g.Name)
	promised, err := promise.Decode(came.Annotations[api.AnnotationPromise])
	audit := g.Input.Policy.EnforcementMode == api.EnforceAudit
	switch {
	case err != nil && audit:
		return newFinding(Note, "namespace %s is in audit: nothing is mutated there", g.Name).
			With("policy/"+g.Input.Policy.Name, "enforcementMode", string(api.EnforceAudit))
	case err != nil:
		return newFinding(Problem,
			"a pod that has to come out in a slice came out as it was: the API server does not reach the webhook, or leaves the namespace out").
			With(where, "dry-run metadata.annotations["+api.AnnotationPromise+"]", "missing").
			WithRemedy("see webhooks, authority and replicas below; kubectl get --raw /metrics | grep apiserver_admission_webhook_fail_open_count counts the calls in which the API server got no answer")
	case promised.Strategy != wanted.Promise.Strategy || promised.Pools[0] != wanted.Promise.Pools[0]:
		return newFinding(Warning, "a pod came out in a slice, but not in the one that policies and nodes call for: replicas have not seen them yet, or run another version").
			With(where, "dry-run", given(promised)).With(where, "expected", given(wanted.Promise))
	default:
		return newFinding(OK, "a pod of namespace %s comes out in a slice", g.Name).With(where, "dry-run", given(promised)).
			With("policy/"+promised.Policy, "enforcement planned", string(promised.Planned.Tier))
	}
}

// given describes a pod's slices in a few words.
func given(p *promise.Promise) string {
	var sizes []string
	for _, c := range p.Containers {
		sizes = append(sizes, c.Slice.Human())
	}
	return fmt.Sprintf("%s by %s on %s", strings.Join(sizes, ", "), p.Strategy, p.Pools[0])
}

// Answer is the decision about a pod, in words.
func Answer(d policies.Decision) string {
	if text := d.Message(); text != "" {
		return text
	}
	return string(d.IfEnforced) + ": " + d.UnchangedReason
}

// denial tries a pod that has to be denied, in the webhook's own words.
func (t *trial) denial(g Governed) Finding {
	where := object("namespace", "", g.Name)
	pod, wanted := Deniable(g)
	_, err := t.create(pod)
	status, answered := errors.AsType[*apierrors.StatusError](err)
	mode := g.Input.Policy.EnforcementMode
	switch {
	case err == nil && wanted.Outcome != policies.Denied:
		return newFinding(Note, "namespace %s is in %s: nothing is denied there", g.Name, mode).
			With("policy/"+g.Input.Policy.Name, "enforcementMode", string(mode))
	case err == nil:
		return newFinding(Problem, "a pod that has to be denied is admitted").
			With(where, "dry-run", "created").With(where, "expected", wanted.Message()).
			WithRemedy("see webhooks, authority and replicas below")
	case !answered || !strings.Contains(status.Status().Message, wanted.Message()) || wanted.Message() == "":
		return newFinding(Problem, "a pod that gpuslice has to deny was denied for another reason").
			With(where, "dry-run", err.Error()).With(where, "expected", wanted.Message())
	}
	return newFinding(OK, "a pod of namespace %s that requests an invalid size is denied", g.Name).With(where, "dry-run", wanted.Message())
}
