// Package ongpu proves on the GPUs of each pool what enforces a slice: it is verify --on-gpu.
package ongpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/doctor"
	"github.com/gpuslice/gpuslice/cmd/prove/proof"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// onGPU are the flags of verify --on-gpu.
type onGPU struct {
	enabled, yes bool
	pool         string
	watch, limit time.Duration
}

// New returns the proof.
func New() doctor.Proof { return &onGPU{} }

// Wanted implements doctor.Proof.
func (o *onGPU) Wanted() bool { return o.enabled }

// Extend implements doctor.Proof.
func (o *onGPU) Extend(cmd *cobra.Command) {
	cmd.Short += ", or on GPUs what holds slices"
	cmd.Long += help
	cmd.Example += example
	cmd.Flags().BoolVar(&o.enabled, "on-gpu", false, "create pods that go past their slice on each pool's GPUs, and report what held them")
	cmd.Flags().StringVar(&o.pool, "pool", "", "with --on-gpu, the `POOL` to try (default: all with nodes)")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "with --on-gpu, go on where others have memory of the GPU: an allocation of theirs may fail")
	cmd.Flags().DurationVar(&o.watch, "watch", time.Minute, "with --on-gpu, how long each pod waits past its slice")
	cmd.Flags().DurationVar(&o.limit, "timeout", 10*time.Minute, "with --on-gpu, how long a pod may take in all")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !o.enabled && (o.pool != "" || o.yes) {
			return errors.New("--pool and --yes belong to --on-gpu")
		}
		if n := cmd.Flag("namespace"); o.enabled && (n == nil || n.Value.String() == "") {
			return errors.New("--on-gpu needs -n NAMESPACE, of one that no tenant may use: whoever changes its pods can forge the result")
		}
		if o.watch <= 0 || o.watch > 10*time.Minute || o.limit <= o.watch {
			return errors.New("--watch: more than 0, at most 10m, and less than --timeout")
		}
		return nil
	}
}

const example = `

  # what really holds a program that goes past its slice, in a namespace that no tenant may use
  gpuslice verify --on-gpu -n gpuslice-prove`

const help = `
With --on-gpu, it creates pods that run gpuslice-prove, one after the other, in a slice of each pool: the program goes past its
slice by a little in each way that CUDA has, and reports what held it. It says first what it will do. --yes lets it go on where
others have memory of the same device: an allocation of theirs may fail meanwhile. The results are findings. It needs -n: whoever
may change pods in that namespace can forge a result, so name one that no tenant may use.
`

// prover runs pods that go past their slices.
type prover struct {
	client    kubernetes.Interface
	facts     *doctor.Facts
	flags     onGPU
	namespace doctor.Governed
	err       io.Writer
}

// Run implements doctor.Proof: it tries each pool.
func (o *onGPU) Run(ctx context.Context, client kubernetes.Interface, f *doctor.Facts, namespace string, err io.Writer) []doctor.Finding {
	g, problem := chooseForProof(f, namespace)
	if problem != nil {
		problem.Check = "namespace"
		return []doctor.Finding{*problem}
	}
	p := prover{client: client, facts: f, flags: *o, namespace: g, err: err}
	tried := p.pools()
	if len(tried) == 0 {
		none := newFinding(doctor.Problem, "no pool to try").With("namespace/"+g.Name, "--pool", o.pool).WithRemedy("gpuslice pools")
		none.Check = "on-gpu"
		return []doctor.Finding{none}
	}
	var all []doctor.Finding
	for i := range tried {
		found := p.try(ctx, &tried[i])
		found.Check = "on-gpu"
		all = append(all, found)
	}
	return all
}

// chooseForProof finds the namespace to try in.
func chooseForProof(f *doctor.Facts, namespace string) (doctor.Governed, *doctor.Finding) {
	candidates, problem := doctor.Choose(f, namespace)
	if problem != nil {
		return doctor.Governed{}, problem
	}
	g := candidates[0]
	if g.Input.Guard == nil {
		return doctor.Governed{}, new(newFinding(doctor.Problem, "the webhook injects no guard, and the program is in the guard's image").
			With("namespace/"+f.System, "--guard-image", "missing").WithRemedy("set --guard-image of the webhook"))
	}
	return g, nil
}

// pools are those to try: with nodes, and allowed to the namespace.
func (p prover) pools() (out []pools.Pool) {
	for _, one := range p.namespace.Input.Pools {
		if len(one.Nodes) > 0 && one.Strategy != "" && p.namespace.Input.Policy.Allows(one.Strategy) &&
			(p.flags.pool == "" || p.flags.pool == one.Name) {
			out = append(out, one)
		}
	}
	return out
}

func newFinding(level doctor.Level, format string, args ...any) doctor.Finding {
	return doctor.Finding{Level: level, Summary: fmt.Sprintf(format, args...), Evidence: []doctor.Evidence{}}
}

// program is the path in the guard's image.
const program = "/gpuslice-prove"

// pod requests a slice of the pool, by labels.
func (p prover) pod(pool *pools.Pool, labels map[string]string, w proof.Way) *corev1.Pod {
	pod, guard := doctor.PodWith(p.namespace.Name, labels), p.namespace.Input.Guard
	pod.GenerateName = "gpuslice-prove-"
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: nodesOf(pool)}}}
	if guard.PullSecret != "" {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: guard.PullSecret}}
	}
	c := &pod.Spec.Containers[0]
	c.Name, c.Image, c.ImagePullPolicy = "prove", guard.Image, guard.PullPolicy
	c.Command = []string{program, "--json", "--termination-message-path",
		corev1.TerminationMessagePathDefault, "--way", string(w), "--watch", p.flags.watch.String()}
	if p.flags.yes {
		c.Command = append(c.Command, "--yes")
	}
	return pod
}

// mostNodes are as many of a pool's nodes as a pod of it may go to: one is enough.
const mostNodes = 16

// nodesOf selects nodes of the pool by their names. A label need not have a node's name, and a term takes one name.
func nodesOf(pool *pools.Pool) (terms []corev1.NodeSelectorTerm) {
	for _, kind := range pool.Nodes {
		for _, n := range kind.Named {
			if len(terms) < mostNodes {
				terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{n.Name}}}})
			}
		}
	}
	return terms
}

// labels are those by which a pod gets a slice of the pool, with the decision.
func (p prover) labels(pool *pools.Pool) (map[string]string, policies.Decision, bool) {
	var last policies.Decision
	// the best first
	for _, labels := range []map[string]string{{api.LabelMemory: "2Gi"}, {api.LabelMemory: "1Gi"}, {api.LabelClass: api.ClassReplica}} {
		in := p.namespace.Input
		in.Pools = []pools.Pool{*pool}
		in.Pod = p.pod(pool, labels, proof.Alloc)
		if last = policies.Decide(in); last.IfEnforced == policies.Mutated && len(last.Promise.Containers) == 1 {
			return labels, last, true
		}
	}
	return nil, last, false
}

// try goes past a slice of the pool in each way, and reports what stopped it.
func (p prover) try(ctx context.Context, pool *pools.Pool) doctor.Finding {
	where := "pool/" + pool.Name
	labels, decision, ok := p.labels(pool)
	if !ok {
		return newFinding(doctor.Problem, "no pod of namespace %s gets a slice of pool %s", p.namespace.Name, pool.Name).
			With(where, "answer", doctor.Answer(decision))
	}
	ways := slices.DeleteFunc(proof.Ways(), func(w proof.Way) bool { return w.EvadesMPS() && pool.MPSProvider == "" })
	fmt.Fprintf(p.err,
		"pool %s: %d pods in namespace %s, one after the other, each of which goes a little past a slice of %s for at most %s\n",
		pool.Name, len(ways), p.namespace.Name, decision.Promise.Containers[0].Slice.Human(), p.flags.watch)
	found := tried{Pool: pool.Name}
	for _, w := range ways {
		report, err := p.run(ctx, pool, labels, w)
		if err != nil {
			report.Attempts = []proof.Attempt{{Way: w, Detail: err.Error()}}
		}
		if len(report.Attempts) > 0 {
			fmt.Fprintf(p.err, "pool %s: %s\n", pool.Name, attemptText(report.Attempts[0]))
		}
		if err == nil {
			found.Report = found.Merge(report)
		} else {
			found.Attempts = append(found.Attempts, report.Attempts...)
		}
		if ctx.Err() != nil {
			return newFinding(doctor.Problem, "stopped: nothing follows about pool %s", pool.Name)
		}
	}
	return resultOf(found, decision.Promise.Planned.Tier)
}

// run runs one pod, and returns its report.
func (p prover) run(ctx context.Context, pool *pools.Pool, labels map[string]string, w proof.Way) (r proof.Report, err error) {
	ctx, stop := context.WithTimeout(ctx, p.flags.limit)
	defer stop()
	pods := p.client.CoreV1().Pods(p.namespace.Name)
	pod, err := pods.Create(ctx, p.pod(pool, labels, w), metav1.CreateOptions{})
	if err != nil {
		return r, fmt.Errorf("create the pod: %w", err)
	}
	defer func() {
		now := int64(0)
		aside, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer stop()
		_ = pods.Delete(aside, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	}()
	guarded, err := promisedOn(pod, pool)
	if err != nil {
		return r, err
	}
	end, err := p.awaitEnd(ctx, pod)
	if err != nil {
		return r, err
	}
	if r, err = readReport(end.Message, w); err != nil {
		return r, err
	}
	for i := range r.Attempts {
		if a := &r.Attempts[i]; a.Held == proof.Guard && !guarded {
			a.Held, a.Detail = proof.Unknown, a.Detail+", and the pod has no guard"
		}
	}
	return r, nil
}

// pollEvery is how often a pod is looked at.
const pollEvery = 500 * time.Millisecond

// awaitEnd waits until the program of the pod, as it was created, has terminated.
func (p prover) awaitEnd(ctx context.Context, created *corev1.Pod) (*corev1.ContainerStateTerminated, error) {
	waiting := "no container runs"
	for {
		pod, err := p.client.CoreV1().Pods(p.namespace.Name).Get(ctx, created.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			for _, s := range pod.Status.ContainerStatuses {
				if s.Name == "prove" && s.State.Terminated != nil {
					return s.State.Terminated, unchanged(created, pod)
				}
				if s.State.Waiting != nil {
					waiting = strings.TrimSpace(s.State.Waiting.Reason + " " + s.State.Waiting.Message)
				}
			}
			if pod.Status.Phase == corev1.PodFailed {
				return nil, fmt.Errorf("the pod failed: %s", strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message))
			}
		case apierrors.IsNotFound(err):
			return nil, errors.New("the pod was deleted")
		case ctx.Err() == nil:
			return nil, fmt.Errorf("read the pod: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the pod did not end in time (%s)", waiting)
		case <-time.After(pollEvery):
		}
	}
}
