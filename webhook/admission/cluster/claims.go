package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// discoveryRetry is how long a replica waits before it checks again whether the cluster allocates devices dynamically.
const discoveryRetry = time.Second

// discoveryPeriod is how late it notices that a cluster has begun to.
const discoveryPeriod = time.Minute

// maxClaimReads is how many claims of one pod are read for one review, each once: every review has to do with the same client.
const maxClaimReads = 16

// claimReader reads device classes, the ResourceSlices of drivers, and pods' claims. If the cluster does not serve
// resource.k8s.io/v1 it knows nothing, and takes claims for those of other devices: no claim gives anything here.
type claimReader struct {
	client                             kubernetes.Interface
	unserved                           *atomic.Bool
	crowded                            *atomic.Bool // not all claims are kept
	classes, slices, claims, templates cache.SharedIndexInformer
	reads                              *claimReads
}

func newClaimReader(client kubernetes.Interface, log logr.Logger, touch func()) (claimReader, error) {
	kinds, full := client.ResourceV1(), reportFull(log)
	crowded := new(atomic.Bool)
	r := claimReader{
		client:   client,
		unserved: new(atomic.Bool),
		crowded:  crowded,
		reads:    &claimReads{namespaces: map[string]*namespaceReads{}},
		classes:  bounded.From(client, kinds.DeviceClasses(), nil).Informer(bounded.Kept{Name: "DeviceClasses", Of: slimClaim}, cache.Indexers{}),
		slices: bounded.From(client, kinds.ResourceSlices(), nil).
			Informer(bounded.Kept{Name: "ResourceSlices", Of: slimClaim}, cache.Indexers{}),
		claims: bounded.From(client, kinds.ResourceClaims(metav1.NamespaceAll), nil).Informer(
			bounded.Kept{Name: "ResourceClaims", Of: slimClaim, Bytes: maxClaims, Full: func(kind, namespace string) {
				crowded.Store(true)
				full(kind, namespace)
			}}, cache.Indexers{}),
		templates: bounded.From(client, kinds.ResourceClaimTemplates(metav1.NamespaceAll), nil).Informer(
			bounded.Kept{Name: "ResourceClaimTemplates", Of: slimClaim, Bytes: maxTemplates, Full: full}, cache.Indexers{}),
	}
	for _, informer := range []cache.SharedIndexInformer{r.classes, r.slices} {
		if _, err := informer.AddEventHandler(onChange(touch)); err != nil {
			return r, fmt.Errorf("watch: %w", err)
		}
	}
	return r, nil
}

func (r claimReader) all() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{r.classes, r.slices, r.claims, r.templates}
}

// served are the informers that the cluster can answer. It returns once that is known, or when ctx ends.
func (r claimReader) served(ctx context.Context) []cache.SharedIndexInformer {
	_ = wait.PollUntilContextCancel(ctx, discoveryRetry, true, func(context.Context) (bool, error) {
		err := r.discover()
		return err == nil || apierrors.IsNotFound(err), nil
	}) // its only error is that ctx ended
	if r.unserved.Load() {
		return nil
	}
	return r.all()
}

// awaitServed runs the informers as soon as a cluster that did not serve claims does, until ctx ends: API servers are upgraded beneath us.
func (r claimReader) awaitServed(ctx context.Context, period time.Duration) {
	if !r.unserved.Load() ||
		wait.PollUntilContextCancel(ctx, period, true, func(context.Context) (bool, error) { return r.discover() == nil, nil }) != nil {
		return
	}
	var informers sync.WaitGroup
	for _, informer := range r.all() {
		informers.Go(func() { informer.RunWithContext(ctx) })
	}
	informers.Wait()
}

// discover checks whether the cluster serves claims.
func (r claimReader) discover() error {
	_, err := r.client.Discovery().ServerResourcesForGroupVersion(resourcev1.SchemeGroupVersion.String())
	if err == nil || apierrors.IsNotFound(err) {
		r.unserved.Store(err != nil)
	}
	return err
}

// deviceClasses are those in the cache, by name.
func (r claimReader) deviceClasses() map[string]*resourcev1.DeviceClass {
	out := map[string]*resourcev1.DeviceClass{}
	forEach(r.classes, func(c *resourcev1.DeviceClass) { out[c.Name] = c })
	return out
}

// source holds the objects that pools are read from.
func (r claimReader) source(nodes []*corev1.Node) pools.Source {
	s := pools.Source{Nodes: nodes, Classes: r.deviceClasses()}
	forEach(r.slices, func(o *resourcev1.ResourceSlice) { s.Slices = append(s.Slices, o) })
	return s
}

// of returns the specs of the pod's claims, by the pod's names for them. Claims that are not found are left out. read
// gets those that the cache does not have; nil: nothing does.
func (r claimReader) of(pod *corev1.Pod, namespace string,
	read func(claim, template string) *resourcev1.ResourceClaimSpec) map[string]*resourcev1.ResourceClaimSpec {
	if len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	asked := map[[2]string]*resourcev1.ResourceClaimSpec{}
	return specsOf(pod, r.unserved.Load, func(claim, template string) *resourcev1.ResourceClaimSpec {
		names := [2]string{claim, template}
		spec := r.cached(namespace, claim, template)
		if _, again := asked[names]; spec == nil && read != nil && !again && len(asked) < maxClaimReads {
			asked[names] = read(claim, template)
		}
		return cmp.Or(spec, asked[names])
	})
}

// specsOf returns the specs that find has of the pod's claims, by the pod's names for them. Where the cluster serves no claims, each is
// one of nothing; that may change while find reads.
func specsOf(pod *corev1.Pod, unserved func() bool,
	find func(claim, template string) *resourcev1.ResourceClaimSpec) map[string]*resourcev1.ResourceClaimSpec {
	out := map[string]*resourcev1.ResourceClaimSpec{}
	for _, c := range pod.Spec.ResourceClaims {
		spec := find(claimNames(pod, c))
		if spec == nil && unserved() {
			spec = &resourcev1.ResourceClaimSpec{}
		}
		if spec != nil {
			out[c.Name] = spec
		}
	}
	return out
}

// allocated is a claim's spec, with the allocated number in place of a request for all devices that match.
func allocated(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaimSpec {
	all := func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.AllocationMode == resourcev1.DeviceAllocationModeAll
	}
	if claim.Status.Allocation == nil || !slices.ContainsFunc(claim.Spec.Devices.Requests, all) {
		return &claim.Spec
	}
	spec := claim.Spec
	spec.Devices.Requests = slices.Clone(spec.Devices.Requests)
	for i, r := range spec.Devices.Requests {
		given := int64(0)
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.Request == r.Name {
				given++
			}
		}
		if all(r) && given > 0 {
			exactly := *r.Exactly
			exactly.AllocationMode, exactly.Count = resourcev1.DeviceAllocationModeExactCount, given
			spec.Devices.Requests[i].Exactly = &exactly
		}
	}
	return &spec
}

// Claims are device classes, and the specs of claims and templates, by NAMESPACE/NAME. They are for tools that read
// once the objects that a Watcher watches.
type Claims struct {
	Classes           map[string]*resourcev1.DeviceClass
	Claims, Templates map[string]*resourcev1.ResourceClaimSpec
	Unserved          bool // the cluster does not serve resource.k8s.io/v1
}

// Add adds a claim as it was read.
func (c Claims) Add(claim *resourcev1.ResourceClaim) {
	c.Claims[claim.Namespace+"/"+claim.Name] = allocated(claim)
}

// Slices is how many templates of gpuslice's a namespace has.
func (c Claims) Slices(namespace string) (n int) {
	for name := range c.Templates {
		if rest, ok := strings.CutPrefix(name, namespace+"/"); ok && claims.NamesSlice(rest) {
			n++
		}
	}
	return n
}

// Of is the Input of a pod of the namespace.
func (c Claims) Of(in policies.Input, pod *corev1.Pod) policies.Input {
	in.Pod, in.DeviceClasses, in.Claims = pod, c.Classes, c.specs(in.Namespace.Name, pod)
	return in
}

// GPUClaims are those of a pod of the namespace, of whose policy and pools nothing is known.
func (c Claims) GPUClaims(namespace string, pod *corev1.Pod) accounting.PodClaims {
	classes := accounting.DeviceClasses{Policy: &config.Policy{}, Classes: c.Classes}
	return accounting.PodClaims{DeviceClasses: classes, Pod: pod, Claims: c.specs(namespace, pod)}
}

// specs are the specs of the pod's claims, by the pod's name for each.
func (c Claims) specs(namespace string, pod *corev1.Pod) map[string]*resourcev1.ResourceClaimSpec {
	return specsOf(pod, func() bool { return c.Unserved }, func(claim, template string) *resourcev1.ResourceClaimSpec {
		return cmp.Or(c.Claims[namespace+"/"+claim], c.Templates[namespace+"/"+template])
	})
}

// claimNames are the names of the claim, if there is one yet, and of the template that it is made from.
func claimNames(pod *corev1.Pod, c corev1.PodResourceClaim) (claim, template string) {
	if c.ResourceClaimName != nil {
		return *c.ResourceClaimName, ""
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.Name == c.Name && s.ResourceClaimName != nil {
			claim = *s.ResourceClaimName
		}
	}
	if c.ResourceClaimTemplateName != nil {
		template = *c.ResourceClaimTemplateName
	}
	return claim, template
}

func (r claimReader) cached(namespace, claim, template string) *resourcev1.ResourceClaimSpec {
	if known := cached[*resourcev1.ResourceClaim](r.claims, namespace+"/"+claim); known != nil {
		return allocated(known)
	}
	if claim != "" && r.crowded.Load() {
		return nil // it may be one that found no room, made from the template as it was then
	}
	if known := cached[*resourcev1.ResourceClaimTemplate](r.templates, namespace+"/"+template); known != nil {
		return &known.Spec.Spec
	}
	return nil
}

// reader reads claims that are younger than the cache from the API server, within a second in all.
func (r claimReader) reader(ctx context.Context, namespace string) func(claim, template string) *resourcev1.ResourceClaimSpec {
	until := time.Now().Add(readTimeout)
	return func(claim, template string) (spec *resourcev1.ResourceClaimSpec) {
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		r.reads.do(ctx, namespace, func() { spec = r.get(ctx, namespace, claim, template) })
		return spec
	}
}

// get reads a claim from the API server, or the template of one that has no name yet; nil: there is none.
func (r claimReader) get(ctx context.Context, namespace, claim, template string) *resourcev1.ResourceClaimSpec {
	if claim != "" {
		if c, err := r.client.ResourceV1().ResourceClaims(namespace).Get(ctx, claim, metav1.GetOptions{}); err == nil {
			return allocated(c)
		}
		return nil
	}
	if t, err := r.client.ResourceV1().ResourceClaimTemplates(namespace).Get(ctx, template, metav1.GetOptions{}); err == nil {
		return &t.Spec.Spec
	}
	return nil
}
