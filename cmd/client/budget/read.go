package budget

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

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
