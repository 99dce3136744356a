package watcher

import (
	"cmp"
	"context"
	"fmt"
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

	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
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
	return cluster.SpecsOf(pod, r.unserved.Load, func(claim, template string) *resourcev1.ResourceClaimSpec {
		names := [2]string{claim, template}
		spec := r.cached(namespace, claim, template)
		if _, again := asked[names]; spec == nil && read != nil && !again && len(asked) < maxClaimReads {
			asked[names] = read(claim, template)
		}
		return cmp.Or(spec, asked[names])
	})
}

func (r claimReader) cached(namespace, claim, template string) *resourcev1.ResourceClaimSpec {
	if known := cached[*resourcev1.ResourceClaim](r.claims, namespace+"/"+claim); known != nil {
		return cluster.Allocated(known)
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
			return cluster.Allocated(c)
		}
		return nil
	}
	if t, err := r.client.ResourceV1().ResourceClaimTemplates(namespace).Get(ctx, template, metav1.GetOptions{}); err == nil {
		return &t.Spec.Spec
	}
	return nil
}
