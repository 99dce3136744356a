package clusters

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// Cluster is the content of files or of a live cluster: policies, pools and namespaces.
type Cluster struct {
	Book      config.Book
	Pools     []pools.Pool
	Resources []string // that nodes and device classes offer
	Guard     *config.GuardSettings
	Runtimes  pools.Runtimes
	Namespace string                       // of objects that name none
	Labels    map[string]map[string]string // of namespaces, by name
	// ClaimsUnread is why not everything that pods claim is known; nil: it is.
	ClaimsUnread error

	tenants  map[string]*config.TenantDocument // by namespace; under "": of each that has none of its own
	ranges   map[string][]*corev1.LimitRange   // by namespace
	claims   webhookcluster.Claims
	snapshot *webhookcluster.Snapshot // where policies come from a live cluster, in the place of Book
	complete bool
	extra    map[string]string // labels of every namespace, from flags
}

// Input is the input of a decision about a pod of the namespace, without the pod itself.
func (c *Cluster) Input(namespace string) policies.Input {
	ns := manifest.Namespace(namespace, c.Labels[namespace])
	maps.Copy(ns.Labels, c.extra)
	var in policies.Input
	if c.snapshot != nil {
		in = c.snapshot.Input(ns)
	} else {
		policy, err := c.Book.For(ns)
		in = policies.Input{Namespace: ns, Policy: policy, PolicyError: err,
			Pools: c.Pools, PoolsComplete: c.complete, Resources: c.Resources, Guard: c.Guard, Runtimes: c.Runtimes}
	}
	in.LimitRanges = c.ranges[namespace]
	return in.Tightened(cmp.Or(c.tenants[namespace], c.tenants[""]))
}

// InputOf is the input of a decision about a pod of the namespace.
func (c *Cluster) InputOf(namespace string, pod *corev1.Pod) policies.Input {
	return c.claims.Of(c.Input(namespace), pod)
}

// ClaimProblems are the claims and templates of the namespace that take GPUs and are no slices of gpuslice's, each with the reason.
func (c *Cluster) ClaimProblems(namespace string) (claims, templates map[string]string) {
	classes := c.InputOf(namespace, &corev1.Pod{}).GPUClaims()
	problems := func(all map[string]*resourcev1.ResourceClaimSpec, template bool) map[string]string {
		out := map[string]string{}
		for key, spec := range all {
			name, within := strings.CutPrefix(key, namespace+"/")
			named := ""
			if template {
				named = name
			}
			if problem := classes.ClaimProblem(named, spec); within && problem != "" {
				out[name] = problem
			}
		}
		return out
	}
	return problems(c.claims.Claims, false), problems(c.claims.Templates, true)
}

// AddNamespace keeps the labels of a Namespace of a file, by which policies select. It reports whether the object is one.
func (c *Cluster) AddNamespace(o manifest.Object) bool {
	is := o.Kind == "Namespace" && o.APIVersion == "v1"
	if is {
		keep(&c.Labels, o.Name, o.Labels)
	}
	return is
}

// AddLimitRange keeps a LimitRange of a file, in the place of the cluster's of that name. Other objects are left out.
func (c *Cluster) AddLimitRange(o manifest.Object, namespace string) error {
	if o.Kind != "LimitRange" || o.APIVersion != corev1.SchemeGroupVersion.String() {
		return nil
	}
	r, err := decode[corev1.LimitRange](o)
	if err != nil {
		return err
	}
	namespace = cmp.Or(o.Namespace, namespace)
	others := slices.DeleteFunc(slices.Clone(c.ranges[namespace]), func(other *corev1.LimitRange) bool { return other.Name == r.Name })
	keep(&c.ranges, namespace, append(others, r))
	return nil
}

// decode reads an object of a file; beside an error it returns what could be read.
func decode[T any](o manifest.Object) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(o.Raw, out); err != nil {
		return out, fmt.Errorf("%s: not a %s: %w", o, o.Kind, err)
	}
	return out, nil
}

// keep adds an entry to a map that may be nil.
func keep[V any](all *map[string]V, key string, value V) {
	if *all == nil {
		*all = map[string]V{}
	}
	(*all)[key] = value
}
