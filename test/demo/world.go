package demo

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// world is what decisions depend on, as a webhook knows it of its cluster, and what the pods that were let in hold.
type world struct {
	book    config.Book
	spec    config.PoolsSpec // of the default policy
	pools   []pools.Pool
	devices []string // names by which devices of any kind are offered
	classes map[string]*resourcev1.DeviceClass
	keys    promise.Keys
	held    map[string][]quota.Holding // by budget
}

// newWorld is the world of policy documents, by name, and of what nodes and drivers offer.
func newWorld(documents map[string][]byte, source pools.Source) (*world, error) {
	var all []*config.Policy
	for name, text := range documents {
		p, problems := config.Parse(api.SystemNamespace+"/"+name, text)
		if len(problems) > 0 {
			return nil, problems.ToAggregate()
		}
		all = append(all, p)
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	w := &world{book: config.NewBook(all), classes: source.Classes, keys: promise.NewKeys(secret), held: map[string][]quota.Holding{}}
	if p := w.book.Default(); p != nil {
		w.spec = p.Pools
	}
	w.pools, w.devices = source.Pools(w.spec, nil), source.Resources()
	return w, nil
}

// answer is what becomes of a pod that somebody creates.
type answer struct {
	pod      *unstructured.Unstructured // as it comes out; nil: denied
	denied   policies.Decision
	reason   string // why it is unchanged
	warnings []string
}

// create decides a new pod as the webhook does: by the mutating rules, then, as it comes out, by the validating ones and its quota.
func (w *world) create(pod *unstructured.Unstructured) (a answer, err error) {
	text, err := json.Marshal(pod)
	if err != nil {
		return a, err
	}
	in := w.input(pod.GetNamespace())
	raw, violation, err := rawpod.Decode(text)
	switch {
	case err != nil:
		return a, err
	case violation != nil:
		return a.after(in.Deny(*violation), pod), nil
	}
	d, patch := policies.Create(in, raw, w.keys)
	if a = a.after(d, pod); a.pod == nil {
		return a, nil
	}
	if text, err = manifest.Patch(text, patch); err != nil {
		return a, err
	}
	made := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, made); err != nil {
		return a, err
	}
	if raw, _, err = rawpod.Decode(text); err != nil {
		return a, err
	}
	in.Pod = raw.Pod
	return a.after(w.verify(in), made), nil
}

// after is the answer once d was decided about the pod.
func (a answer) after(d policies.Decision, pod *unstructured.Unstructured) answer {
	a.warnings, a.reason = append(a.warnings, d.Warnings...), cmp.Or(a.reason, d.UnchangedReason)
	if a.pod = pod; d.Outcome == policies.Denied {
		a.pod, a.denied = nil, d
	}
	return a
}

// verify checks a pod as it comes out, and counts it in its quota.
func (w *world) verify(in policies.Input) policies.Decision {
	given := w.keys.PromiseOf(in.Pod)
	d := policies.Verify(in, given)
	if d.Outcome == policies.Denied || in.Policy.Off() {
		return d
	}
	budget, holding := in.Policy.Quota.BudgetKey(in.Namespace.Name), in.GPUClaims().Total(given)
	excess := in.Policy.QuotaFor(in.Namespace.Name).Excess(func(s quota.Scope) (used quota.Charge) {
		for _, h := range w.held[budget] {
			used = used.Plus(h.In(s))
		}
		return used
	}, holding)
	if len(excess) > 0 {
		over := policies.DenyQuota(in, excess)
		over.Warnings = append(over.Warnings, d.Warnings...)
		return over
	}
	w.held[budget] = append(w.held[budget], holding)
	return d
}

// input is the input of a decision about a pod of the namespace, without the pod.
func (w *world) input(namespace string) policies.Input {
	ns := api.Namespace{Name: namespace, Labels: map[string]string{corev1.LabelMetadataName: namespace}}
	in := policies.Input{Namespace: ns, Pools: w.pools, PoolsComplete: w.spec.Complete, Resources: w.devices,
		DeviceClasses: w.classes, Guard: scenarios.Guard()}
	in.Policy, in.PolicyError = w.book.For(ns)
	return in
}

// storyWorld is one node with one GPU.
func storyWorld() (*world, error) {
	policy, err := files.ReadFile("node/policy.yaml")
	if err != nil {
		return nil, err
	}
	text, err := files.ReadFile("node/a100.yaml")
	if err != nil {
		return nil, err
	}
	var node corev1.Node
	if err := yaml.UnmarshalStrict(text, &node); err != nil {
		return nil, fmt.Errorf("read node/a100.yaml: %w", err)
	}
	return newWorld(map[string][]byte{"demo": policy}, pools.Source{Nodes: []*corev1.Node{&node}})
}

// sampleWorld is the nodes and policies of the samples.
func sampleWorld() (*world, error) {
	documents, err := Policies()
	if err != nil {
		return nil, err
	}
	source, err := Offers()
	if err != nil {
		return nil, err
	}
	return newWorld(documents, source)
}
