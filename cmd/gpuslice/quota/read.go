package quota

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/budgets"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// cluster is where budgets are read.
type cluster struct {
	client kubernetes.Interface
	system string // the namespace of the installation
}

// readBudgets reads the budget that the namespace's pods are counted in, or every one for the namespace "". It takes rights
// in the system namespace; without them its error is a Forbidden one.
func readBudgets(ctx context.Context, c cluster, namespace string) ([]Budget, error) {
	snapshot, err := installed.Snapshot(ctx, c.client, c.system)
	if err != nil {
		return nil, err
	}
	namespaces, err := c.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read namespaces: %w", err)
	}
	scope, err := installed.ReadScope(ctx, c.client, c.system)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	all := byBudget{}
	for _, ns := range namespaces.Items {
		in := snapshot.Input(api.Namespace{Name: ns.Name, Labels: ns.Labels})
		if in.PolicyError != nil && ns.Name == namespace {
			return nil, fmt.Errorf("the quota is unknown: %w", in.PolicyError)
		}
		if !scope.Includes(ns.Name, ns.Labels) || in.Policy.Off() {
			continue
		}
		native, err := installed.NativeQuotas(ctx, c.client, ns.Name)
		if err != nil {
			return nil, err
		}
		all.add(in, native)
	}
	claims, _ := installed.Claims(ctx, c.client, "") // what may not be read counts as a GPU
	return all.usage(ctx, c, namespace, func(pod *corev1.Pod) policies.Input {
		ns := namespaces.Items[slices.IndexFunc(namespaces.Items, func(ns corev1.Namespace) bool { return ns.Name == pod.Namespace })]
		return claims.Of(snapshot.Input(api.Namespace{Name: ns.Name, Labels: ns.Labels}), pod)
	})
}

// byBudget sorts namespaces by the budget that their pods are counted in.
type byBudget map[string]*budget

type budget struct {
	ledger.Budget
	in    policies.Input // of the first namespace
	quota quota.Quota
}

func (b byBudget) add(in policies.Input, native []policies.NativeQuota) {
	name, key := in.Namespace.Name, in.Policy.Quota.BudgetKey(in.Namespace.Name)
	own := in.WithNative(in.Policy.QuotaFor(name), native)
	one, shared := b[key]
	if !shared {
		one = &budget{Budget: ledger.Budget{Key: key}, in: in}
		b[key] = one
	}
	one.Namespaces = append(one.Namespaces, name)
	for _, l := range own.Limits {
		if !shared || l.Scope.Namespace != "" { // what limits all who share stands there already
			one.quota.Limits = append(one.quota.Limits, l)
		}
	}
}

// usage reads the ledger and the pods of each budget that limits anything, or of the one that a namespace counts in.
func (b byBudget) usage(ctx context.Context, c cluster, namespace string, input inputFunc) ([]Budget, error) {
	promiseKeys, _ := installed.Keys(ctx, c.client, c.system) // without them a pod's own account is shown
	store := ledger.ClusterStore{Client: c.client, Namespace: c.system}
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
		pods, err := installed.LivingPods(ctx, c.client, one.Namespaces)
		if err != nil {
			return nil, err
		}
		report := budgets.NewReport(one.in, one.Budget, one.quota, state)
		held, unknown := holders(promiseKeys, pods, input)
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
