package watcher

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/governed"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// Snapshot is the latest one. An error: there is none yet.
func (w *Watcher) Snapshot() (*cluster.Snapshot, error) {
	if s := w.snapshot.Load(); s != nil {
		return s, nil
	}
	return nil, errors.New("policies, namespaces and nodes are not read yet")
}

// Ready returns why reviews cannot be answered yet; nil: they can.
func (w *Watcher) Ready() error {
	_, err := w.Snapshot()
	return err
}

// Input returns the input of a decision about a pod of the namespace, without the pod itself. An error means that the
// namespace cannot be read now; a broken policy is not an error but the Input's PolicyError.
func (w *Watcher) Input(ctx context.Context, namespace string) (policies.Input, error) {
	snapshot, err := w.Snapshot()
	if err != nil {
		return policies.Input{}, err
	}
	ns, err := w.namespaces.Get(ctx, namespace)
	if err != nil {
		return policies.Input{}, err
	}
	in := snapshot.Input(ns)
	in.LimitRanges = w.informers.limitRangesOf(namespace)
	return in, nil
}

// ClaimSpecs holds the specs of a pod's claims, by the pod's names for them. Claims that are not found are left out.
func (w *Watcher) ClaimSpecs(ctx context.Context, namespace string, pod *corev1.Pod) map[string]*resourcev1.ResourceClaimSpec {
	return w.claims.of(pod, namespace, w.claims.reader(ctx, namespace))
}

// Claim is a ResourceClaim of the cache, with its owners, its spec and the requests that were given devices; nil: there
// is none.
func (w *Watcher) Claim(namespace, name string) *resourcev1.ResourceClaim {
	return cached[*resourcev1.ResourceClaim](w.claims.claims, namespace+"/"+name)
}

// CachedInput is the input of the pod's charge, from the cache alone. A namespace that is not there counts as one
// without labels.
func (w *Watcher) CachedInput(pod *corev1.Pod) policies.Input {
	snapshot := w.snapshot.Load()
	if snapshot == nil {
		return policies.Input{Pod: pod}
	}
	in := snapshot.Input(w.namespaces.cached(pod.Namespace))
	in.Pod, in.Claims = pod, w.claims.of(pod, pod.Namespace, nil)
	return in
}

// Namespaces are those of the cluster. Run keeps them up to date.
func (w *Watcher) Namespaces() *Namespaces { return w.namespaces }

// Nodes is the informer of the cluster's nodes, with labels and allocatable alone. Run runs it; others may read it and add
// handlers.
func (w *Watcher) Nodes() cache.SharedIndexInformer { return w.informers.nodes }

// ResourceQuotas are those of the cluster. Run keeps them up to date.
func (w *Watcher) ResourceQuotas() *nativequota.Quotas { return w.quotas }

// ClaimTemplates is the informer of ResourceClaimTemplates. Run runs it, where the cluster serves them.
func (w *Watcher) ClaimTemplates() cache.SharedIndexInformer { return w.claims.templates }

// Governed are the namespaces whose policy is on, or cannot be read. An error: they are not read yet.
func (w *Watcher) Governed() (out []governed.Namespace, err error) {
	snapshot, err := w.Snapshot()
	if err != nil {
		return nil, err
	}
	forEach(w.informers.namespaces, func(ns *corev1.Namespace) {
		in := snapshot.Input(api.Namespace{Name: ns.Name, Labels: ns.Labels})
		on := in.PolicyError != nil || !in.Policy.Off()
		if on && ns.DeletionTimestamp == nil && ns.Name != w.options.Namespace {
			out = append(out, governed.Namespace{Name: ns.Name, Labels: ns.Labels, Policy: in.Policy, Pools: in.Pools})
		}
	})
	return out, nil
}

// ClosedClasses are the namespaces whose annotation does not name the device classes that are closed there, with these classes. Where a policy cannot be
// read, the annotation stays, or closes those of GPUs where pods with claims are admitted in outages. An error: they are not read yet.
func (w *Watcher) ClosedClasses() (differ map[string]string, err error) {
	snapshot, err := w.Snapshot()
	if err != nil {
		return nil, err
	}
	type rule struct {
		policy *config.Policy
		fail   string // the namespace's label
	}
	differ = map[string]string{}
	closed := map[rule]string{}
	forEach(w.informers.namespaces, func(ns *corev1.Namespace) {
		in := snapshot.Input(api.Namespace{Name: ns.Name, Labels: ns.Labels})
		if ns.DeletionTimestamp != nil || ns.Name == w.options.Namespace {
			return
		}
		if in.PolicyError != nil {
			if ns.Labels[api.LabelFail] != api.FailOpenForClaims || ns.Annotations[api.AnnotationClosedClasses] != "" {
				return
			}
			in.Policy = &config.Policy{}
		}
		by := rule{in.Policy, ns.Labels[api.LabelFail]}
		want, known := closed[by]
		if !known {
			want = in.GPUClaims().Closed(in.Namespace)
			closed[by] = want
		}
		if want != ns.Annotations[api.AnnotationClosedClasses] {
			differ[ns.Name] = want
		}
	})
	return differ, nil
}

// ExtendedNames are the names outside of NVIDIA's by which pods may request GPUs, sorted. An error: they are not read yet.
func (w *Watcher) ExtendedNames() ([]string, error) {
	snapshot, err := w.Snapshot()
	if err != nil {
		return nil, err
	}
	return snapshot.ExtendedNames(), nil
}

// QuotaStatuses are the statuses of the ResourceQuotas on GPU resources in governed namespaces.
func (w *Watcher) QuotaStatuses() []nativequota.QuotaStatus {
	all, _ := w.Governed() // none while they are not read
	return w.quotas.Statuses(all)
}
