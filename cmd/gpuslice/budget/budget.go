// Package budget reads how the budgets of a cluster stand: from policies, ledgers and pods, by those who may read them.
package budget

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// maxHolders bounds the pods that are named below a budget.
const maxHolders = 5

// Budget is the usage of one budget: an item of -o json.
type Budget struct {
	Budget     string         `json:"budget"` // "namespace/NAME" or "shared/NAME"; "": nothing is counted
	Namespaces []string       `json:"namespaces"`
	Policy     string         `json:"policy,omitempty"` // "": none governs the namespace
	Counted    bool           `json:"counted"`
	Figures    []quota.Figure `json:"figures"`
	More       int            `json:"more,omitempty"`
	Holders    []Holder       `json:"holders"`
	// MemoryUnknown reports whether pods hold devices whose memory is not known, which the figures leave out.
	MemoryUnknown bool `json:"memoryUnknown,omitempty"`
	// Plan is how many GPUs the pods need; nil: unknown, or they need none.
	Plan        *Plan  `json:"plan,omitempty"`
	PlanUnknown string `json:"planUnknown,omitempty"` // why it is
}

// Plan is how many GPUs pods need as nodes are divided today, and with the layout of gpuslice plan.
type Plan struct {
	Today   int `json:"today"`
	Planned int `json:"planned"`
}

// Holder is a living pod and its holding.
type Holder struct {
	Namespace string  `json:"namespace"`
	Pod       string  `json:"pod"`
	Memory    int64   `json:"memory"` // bytes; 0 beside gpus: unknown
	Slices    int64   `json:"slices"`
	GPUs      int64   `json:"gpus"`
	Devices   float64 `json:"devices"`             // GPU equivalents
	Promised  bool    `json:"promised"`            // false: it counts as the whole devices that it requests
	Untrusted bool    `json:"untrusted,omitempty"` // it has a promise that no known key signed, and counts likewise
}

// ClaimsFunc returns the claims that a pod's holding depends on.
type ClaimsFunc func(*corev1.Pod) accounting.PodClaims

// Holders are those of the pods that hold the most.
func Holders(keys promise.Keys, pods []corev1.Pod, claims ClaimsFunc) (all []Holder, memoryUnknown bool) {
	all = []Holder{}
	for i := range pods {
		h, promised := holding(keys, claims(&pods[i]))
		if h.Charge == (quota.Charge{}) {
			continue
		}
		memoryUnknown = memoryUnknown || h.MemoryUnknown
		all = append(all, Holder{
			Namespace: pods[i].Namespace, Pod: pods[i].Name, Promised: promised, Untrusted: !promised && promise.ClaimedPromise(&pods[i]) != nil,
			Memory: h.Charge.Memory.Bytes(), Slices: h.Charge.Slices, GPUs: h.Charge.GPUs, Devices: h.Charge.Devices.Float(),
		})
	}
	slices.SortFunc(all, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(b.Slices, a.Slices),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	return all[:min(len(all), maxHolders)], memoryUnknown
}

// holding is a pod's holding: by its promise if a key signed it, and by its own account if no key may be read.
func holding(keys promise.Keys, c accounting.PodClaims) (h quota.Holding, promised bool) {
	p := promise.ClaimedPromise(c.Pod)
	if keys.Signs() {
		p = keys.PromiseOf(c.Pod)
	}
	return c.Total(p), p != nil
}

// Cluster is where budgets are read.
type Cluster struct {
	Client kubernetes.Interface
	System string // the namespace of the installation
}

// Read reads the budget that the namespace's pods are counted in, or every one for the namespace "". It takes rights
// in the system namespace; without them its error is a Forbidden one.
func Read(ctx context.Context, c Cluster, namespace string) ([]Budget, error) {
	snapshot, err := installed.Snapshot(ctx, c.Client, c.System)
	if err != nil {
		return nil, err
	}
	return Of(ctx, c, snapshot, namespace)
}

// Of is Read for a cluster of which policies and pools were read before.
func Of(ctx context.Context, c Cluster, snapshot *webhookcluster.Snapshot, namespace string) ([]Budget, error) {
	namespaces, err := installed.Namespaces(ctx, c.Client)
	if err != nil {
		return nil, err
	}
	scope, err := installed.ReadScope(ctx, c.Client, c.System)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	all, inputs := byBudget{}, map[string]policies.Input{}
	for _, ns := range namespaces {
		in := snapshot.Input(ns)
		inputs[ns.Name] = in
		if in.PolicyError != nil && ns.Name == namespace {
			return nil, fmt.Errorf("the quota is unknown: %w", in.PolicyError)
		}
		if !scope.Includes(ns.Name, ns.Labels) || in.Policy.Off() {
			continue
		}
		native, err := installed.NativeQuotas(ctx, c.Client, ns.Name)
		if err != nil {
			return nil, err
		}
		all.add(in, native)
	}
	claims, _ := installed.Claims(ctx, c.Client, "") // an unreadable claim counts as a GPU
	return all.usage(ctx, c, namespace, func(pod *corev1.Pod) accounting.PodClaims {
		return claims.Of(inputs[pod.Namespace], pod).GPUClaims()
	})
}

// byBudget sorts namespaces by the budget that their pods are counted in.
type byBudget map[string]*group

type group struct {
	ledger.Budget
	in    policies.Input // of the first namespace
	quota quota.Quota
}

func (b byBudget) add(in policies.Input, native []accounting.NativeQuota) {
	name, key := in.Namespace.Name, in.Policy.Quota.BudgetKey(in.Namespace.Name)
	own := accounting.WithNative(in.Policy.QuotaFor(name), in.Policy, name, native)
	one, shared := b[key]
	if !shared {
		one = &group{Budget: ledger.Budget{Key: key}, in: in}
		b[key] = one
	}
	one.Namespaces = append(one.Namespaces, name)
	for _, l := range own.Limits {
		if !shared || l.Scope.Namespace != "" { // limits of all who share are there already
			one.quota.Limits = append(one.quota.Limits, l)
		}
	}
}

// usage reads the ledger and the pods of each budget that limits anything, or of the one that a namespace counts in.
func (b byBudget) usage(ctx context.Context, c Cluster, namespace string, claims ClaimsFunc) ([]Budget, error) {
	promiseKeys, _ := installed.Keys(ctx, c.Client, c.System) // without them a pod's own account is shown
	store := ledger.ClusterStore{Client: c.Client, Namespace: c.System}
	out := []Budget{}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		one := b[key]
		if namespace == "" && len(one.quota.Limits) == 0 || namespace != "" && !slices.Contains(one.Namespaces, namespace) {
			continue
		}
		state, err := stateOf(ctx, store, key)
		if err != nil {
			return nil, err
		}
		pods, err := installed.LivingPods(ctx, c.Client, one.Namespaces)
		if err != nil {
			return nil, err
		}
		report := budgets.NewReport(one.in, one.Budget, one.quota, state)
		held, unknown := Holders(promiseKeys, pods, claims)
		out = append(out, Budget{Budget: key, Namespaces: one.Namespaces, Policy: report.Policy, Counted: report.Counted,
			Figures: report.Figures, More: report.More, Holders: held, MemoryUnknown: unknown})
	}
	if namespace != "" && len(out) == 0 {
		out = append(out, Budget{Namespaces: []string{namespace}, Figures: []quota.Figure{}, Holders: []Holder{}})
	}
	return out, nil
}

func stateOf(ctx context.Context, store ledger.ClusterStore, key string) (ledger.State, error) {
	l := ledger.New(ledger.Options{Store: store})
	defer l.Close()
	return l.Read(ctx, key)
}
