package claimtemplates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// selectPods has the API server leave out pods without a slice and those that have ended: they are most of what a cluster keeps, and are
// neither sent nor decoded. One that ends while it is watched is shown as deleted. Of the others whole pods are sent:
// PartialObjectMetadata, the smaller form, has no claims.
func selectPods(o *metav1.ListOptions) {
	o.LabelSelector = api.LabelTier
	o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
}

// maxNames is how many bytes of names are kept, of which pods that name the same share theirs. Templates that pods beyond it name are not
// written.
const maxNames = 32 << 20

// podsWithSlices are the pods that selectPods selects.
func podsWithSlices(client kubernetes.Interface) bounded.Source {
	return bounded.From(client, client.CoreV1().Pods(metav1.NamespaceAll), selectPods)
}

// watchPods has the templates that pods name counted. It is a Reflector rather than an informer, which would keep each pod.
func watchPods(client kubernetes.Interface, named *namedTemplates, full func(kind, namespace string)) *cache.Reflector {
	source := podsWithSlices(client).ListerWatcher(bounded.Kept{Name: "pods with a slice", Of: reduce, Bytes: maxNames, Full: full})
	return cache.NewReflectorWithOptions(source, nil, named, cache.ReflectorOptions{Name: "templates that pods name", TypeDescription: "pods with a slice"})
}

// errNames ends a list once a pod names a template.
var errNames = errors.New("a pod names a template")

// nameTemplates reports whether a pod with a slice names templates.
func nameTemplates(ctx context.Context, client kubernetes.Interface) (bool, error) {
	_, err := podsWithSlices(client).Each(ctx, metav1.ListOptions{Limit: 500}, func(object runtime.Object) error {
		if pod, ok := object.(*corev1.Pod); ok && namesOf(pod) != (names{}) {
			return errNames
		}
		return nil
	})
	switch {
	case errors.Is(err, errNames):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("list pods with a slice: %w", err)
	}
	return false, nil
}

// names are the templates that a pod names, sorted, each once. Pods that name the same share them.
type names struct{ joined unique.Handle[string] }

// separator is in no name of a template.
const separator = " "

// namesOf are gpuslice's templates that the pod names. They are no more than a pod may have containers, since an author who is not
// governed can write any number of claims.
func namesOf(pod *corev1.Pod) names {
	var all []string
	for i := range pod.Spec.ResourceClaims {
		name := pod.Spec.ResourceClaims[i].ResourceClaimTemplateName
		if name != nil && len(all) < policies.MaxContainers && !slices.Contains(all, *name) && templateNamed("", *name) != nil {
			all = append(all, *name)
		}
	}
	if len(all) == 0 {
		return names{}
	}
	slices.Sort(all)
	return names{unique.Make(strings.Join(all, separator))}
}

func (n names) list() []string {
	if n == (names{}) {
		return nil
	}
	return strings.Split(n.joined.Value(), separator)
}

// namingPod is what is kept of a pod.
type namingPod struct {
	metav1.ObjectMeta // with names and version alone
	names             names
}

// GetObjectKind implements runtime.Object.
func (p *namingPod) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object: it never changes.
func (p *namingPod) DeepCopyObject() runtime.Object { return p }

// Common implements bounded.Sharer.
func (p *namingPod) Common() (part any, bytes int) {
	if p.names == (names{}) {
		return nil, 0
	}
	return p.names, len(p.names.joined.Value())
}

// reduce keeps a namingPod of a pod.
func reduce(object runtime.Object) (runtime.Object, int) {
	if pod, ok := object.(*corev1.Pod); ok {
		kept := &namingPod{metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion}, namesOf(pod)}
		if kept.names == (names{}) {
			return kept, 0
		}
		return kept, 1
	}
	return object, 0
}
