package claimtemplates

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// selectPods has the API server leave out pods without a slice and those that have ended: they are most of what a cluster keeps, and are
// neither sent nor decoded. One that ends while it is watched is shown as deleted. Of the others whole pods are sent:
// PartialObjectMetadata, the smaller form, has no claims.
func selectPods(o *metav1.ListOptions) {
	o.LabelSelector = api.LabelTier
	o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
}

// watchPods has the templates that pods name counted. It is a Reflector rather than an informer, which would keep each pod.
func watchPods(client kubernetes.Interface, named *namedTemplates) *cache.Reflector {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			selectPods(&o)
			return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			selectPods(&o)
			return client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, o)
		},
	}
	return cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, client), &corev1.Pod{}, named,
		cache.ReflectorOptions{Name: "templates that pods name"})
}

// nameTemplates reports whether a pod with a slice names templates.
func nameTemplates(ctx context.Context, client kubernetes.Interface) (bool, error) {
	o := metav1.ListOptions{Limit: 500}
	selectPods(&o)
	for {
		list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return false, fmt.Errorf("list pods with a slice: %w", err)
		}
		for i := range list.Items {
			if namesOf(&list.Items[i]) != (names{}) {
				return true, nil
			}
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return false, nil
		}
	}
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

// namingPod is what a list that is streamed keeps of each pod until its end.
type namingPod struct {
	namespace, name string
	names           names
}

// reduced is a pod as a watch shows it, or as a list that is streamed has kept it; nil: it is none.
func reduced(object any) *namingPod {
	switch pod := object.(type) {
	case *namingPod:
		return pod
	case *corev1.Pod:
		return &namingPod{pod.Namespace, pod.Name, namesOf(pod)}
	}
	return nil
}

// reduce is reduced as a cache.TransformFunc: what is no pod stays as it is.
func reduce(object any) (any, error) {
	if pod := reduced(object); pod != nil {
		return pod, nil
	}
	return object, nil
}

// GetObjectMeta implements metav1.ObjectMetaAccessor: the list is kept by namespace and name.
func (p *namingPod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.namespace, Name: p.name}
}
