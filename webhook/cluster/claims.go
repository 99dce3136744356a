package cluster

import (
	"cmp"
	"context"
	"fmt"
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
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// discoveryRetry is how long a replica waits before it asks again whether the cluster allocates devices dynamically.
const discoveryRetry = time.Second

// claimReader knows device classes, what drivers publish, and what pods claim. Where the cluster does not serve resource.k8s.io/v1 it knows
// nothing.
type claimReader struct {
	client                             kubernetes.Interface
	classes, slices, claims, templates cache.SharedIndexInformer
}

func newClaimReader(client kubernetes.Interface, log logr.Logger, touch func()) (claimReader, error) {
	kinds, full := client.ResourceV1(), reportFull(log)
	r := claimReader{
		client:  client,
		classes: bounded.From(client, kinds.DeviceClasses(), nil).Informer(bounded.Kept{Name: "DeviceClasses", Of: slimClaim}, cache.Indexers{}),
		slices:  bounded.From(client, kinds.ResourceSlices(), nil).Informer(bounded.Kept{Name: "ResourceSlices", Of: slimClaim}, cache.Indexers{}),
		claims: bounded.From(client, kinds.ResourceClaims(metav1.NamespaceAll), nil).Informer(
			bounded.Kept{Name: "ResourceClaims", Of: slimClaim, Bytes: maxClaims, Full: full}, cache.Indexers{}),
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
func (r claimReader) served(ctx context.Context) (all []cache.SharedIndexInformer) {
	_ = wait.PollUntilContextCancel(ctx, discoveryRetry, true, func(context.Context) (bool, error) {
		_, err := r.client.Discovery().ServerResourcesForGroupVersion(resourcev1.SchemeGroupVersion.String())
		if err == nil {
			all = r.all()
		}
		return err == nil || apierrors.IsNotFound(err), nil
	}) // its only error is that ctx ended
	return all
}

// deviceClasses are those in the cache, by name.
func (r claimReader) deviceClasses() map[string]*resourcev1.DeviceClass {
	out := map[string]*resourcev1.DeviceClass{}
	forEach(r.classes, func(c *resourcev1.DeviceClass) { out[c.Name] = c })
	return out
}

// source is what pools are read from.
func (r claimReader) source(nodes []*corev1.Node) pools.Source {
	s := pools.Source{Nodes: nodes, Classes: r.deviceClasses()}
	forEach(r.slices, func(o *resourcev1.ResourceSlice) { s.Slices = append(s.Slices, o) })
	return s
}

// of returns what the pod claims, by the names that it has for its claims. Those that are not found are left out.
// read gets what the cache has not; nil: nothing does.
func (r claimReader) of(pod *corev1.Pod, namespace string, read func(claim, template string) *resourcev1.ResourceClaimSpec) map[string]*resourcev1.ResourceClaimSpec {
	if len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	out := map[string]*resourcev1.ResourceClaimSpec{}
	for _, c := range pod.Spec.ResourceClaims {
		claim, template := claimNames(pod, c)
		spec := r.cached(namespace, claim, template)
		if spec == nil && read != nil {
			spec = read(claim, template)
		}
		if spec != nil {
			out[c.Name] = spec
		}
	}
	return out
}

// Claims are device classes, and what claims and templates ask for, by NAMESPACE/NAME. They are for tools that ask once what a
// Watcher watches.
type Claims struct {
	Classes           map[string]*resourcev1.DeviceClass
	Claims, Templates map[string]*resourcev1.ResourceClaimSpec
}

// Of is the Input of a pod of the namespace.
func (c Claims) Of(in policies.Input, pod *corev1.Pod) policies.Input {
	in.Pod, in.DeviceClasses, in.Claims = pod, c.Classes, map[string]*resourcev1.ResourceClaimSpec{}
	for _, one := range pod.Spec.ResourceClaims {
		claim, template := claimNames(pod, one)
		if spec := cmp.Or(c.Claims[in.Namespace.Name+"/"+claim], c.Templates[in.Namespace.Name+"/"+template]); spec != nil {
			in.Claims[one.Name] = spec
		}
	}
	return in
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
	if object, ok, _ := r.claims.GetStore().GetByKey(namespace + "/" + claim); ok {
		return &object.(*resourcev1.ResourceClaim).Spec
	}
	if object, ok, _ := r.templates.GetStore().GetByKey(namespace + "/" + template); ok {
		return &object.(*resourcev1.ResourceClaimTemplate).Spec.Spec
	}
	return nil
}

// reader reads claims that are younger than the cache from the API server, within a second in all.
func (r claimReader) reader(ctx context.Context, namespace string) func(claim, template string) *resourcev1.ResourceClaimSpec {
	until := time.Now().Add(readTimeout)
	return func(claim, template string) *resourcev1.ResourceClaimSpec {
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		if claim != "" {
			if c, err := r.client.ResourceV1().ResourceClaims(namespace).Get(ctx, claim, metav1.GetOptions{}); err == nil {
				return &c.Spec
			}
			return nil
		}
		if t, err := r.client.ResourceV1().ResourceClaimTemplates(namespace).Get(ctx, template, metav1.GetOptions{}); err == nil {
			return &t.Spec.Spec
		}
		return nil
	}
}
