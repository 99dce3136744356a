package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
)

const (
	ownerCache  = 4096
	ownerTTL    = 10 * time.Minute
	readTimeout = 2 * time.Second
	maxOwners   = 2 // a ReplicaSet and its Deployment
)

// Owners finds the owners of pods for Events. A reference proves nothing: its author may have written any kind, name and UID.
// It is safe for concurrent use.
type Owners struct {
	client kubernetes.Interface
	known  *cache.LRUExpireCache // by the whole reference
}

// NewOwners returns Owners that reads through client.
func NewOwners(client kubernetes.Interface) *Owners {
	return &Owners{client: client, known: cache.NewLRUExpireCache(ownerCache)}
}

// owner has the facts about a reference.
type owner struct {
	owns   bool
	object metav1.Object // nil: a custom resource, which gpuslice may not read
}

// Of returns the controller of an object and the controller of that one, as far as they exist: kubectl describe shows of a
// Deployment only the Events on the Deployment itself.
func (o *Owners) Of(ctx context.Context, object metav1.Object) (out []corev1.ObjectReference) {
	for range maxOwners {
		ref := ControllerOf(object)
		if ref == nil || !plausible(ref) {
			break
		}
		found := o.find(ctx, ref)
		if !found.owns {
			break
		}
		out = append(out, *ref)
		if object = found.object; object == nil {
			break
		}
	}
	return out
}

// find looks a reference up, each once in a while. An answer that did not come is not remembered.
func (o *Owners) find(ctx context.Context, ref *corev1.ObjectReference) owner {
	if known, ok := o.known.Get(*ref); ok {
		return known.(owner)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found, err := o.read(ctx, ref)
	if err == nil {
		o.known.Add(*ref, found, ownerTTL)
	}
	return found
}

// read reads an owner of a kind of Kubernetes' own that has pods, and compares its UID. For other groups it checks
// whether the kind exists in namespaces; gpuslice may not read such objects, and an Event about one stays in the
// tenant's own namespace.
func (o *Owners) read(ctx context.Context, ref *corev1.ObjectReference) (owner, error) {
	kind, ok := o.kinds(ref.Namespace)[ref.Kind]
	if !ok || kind.version.Group != ref.GroupVersionKind().Group {
		owns, err := o.isCustom(ref)
		return owner{owns: owns}, err
	}
	object, err := kind.get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return owner{}, nil
	}
	if err != nil || object.GetUID() != ref.UID {
		return owner{}, err
	}
	return owner{true, &metav1.ObjectMeta{Namespace: object.GetNamespace(), OwnerReferences: object.GetOwnerReferences()}}, nil
}

// getter reads an object by its name.
type getter func(context.Context, string, metav1.GetOptions) (metav1.Object, error)

// kind is one that has pods.
type kind struct {
	version schema.GroupVersion
	get     getter
}

// kinds are the kinds of owners that gpuslice may read, by name.
func (o *Owners) kinds(namespace string) map[string]kind {
	apps, batch := o.client.AppsV1(), o.client.BatchV1()
	return map[string]kind{
		"ReplicaSet":            {appsv1.SchemeGroupVersion, asObject(apps.ReplicaSets(namespace).Get)},
		"Deployment":            {appsv1.SchemeGroupVersion, asObject(apps.Deployments(namespace).Get)},
		"StatefulSet":           {appsv1.SchemeGroupVersion, asObject(apps.StatefulSets(namespace).Get)},
		"DaemonSet":             {appsv1.SchemeGroupVersion, asObject(apps.DaemonSets(namespace).Get)},
		"Job":                   {batchv1.SchemeGroupVersion, asObject(batch.Jobs(namespace).Get)},
		"CronJob":               {batchv1.SchemeGroupVersion, asObject(batch.CronJobs(namespace).Get)},
		"ReplicationController": {corev1.SchemeGroupVersion, asObject(o.client.CoreV1().ReplicationControllers(namespace).Get)},
	}
}

// Named returns an owner of a kind that gpuslice may read; nil: there is none.
func (o *Owners) Named(ctx context.Context, namespace, kindName, name string) (*corev1.ObjectReference, error) {
	kind, ok := o.kinds(namespace)[kindName]
	if !ok {
		return nil, nil
	}
	object, err := kind.get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", kindName, namespace, name, err)
	}
	return &corev1.ObjectReference{APIVersion: kind.version.String(), Kind: kindName,
		Namespace: namespace, Name: name, UID: object.GetUID()}, nil
}

// asObject hides the result type of get.
func asObject[T metav1.Object](get func(context.Context, string, metav1.GetOptions) (T, error)) getter {
	return func(ctx context.Context, name string, options metav1.GetOptions) (metav1.Object, error) {
		return get(ctx, name, options)
	}
}

// isCustom reports whether the kind is one of somebody else's API that exists in namespaces.
func (o *Owners) isCustom(ref *corev1.ObjectReference) (bool, error) {
	group := ref.GroupVersionKind().Group
	if !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".x-k8s.io") {
		return false, nil // Kubernetes' own: a Node, a Lease
	}
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return false, nil
	}
	list, err := o.client.Discovery().ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Kind == ref.Kind && r.Namespaced && !strings.Contains(r.Name, "/")
	}), nil
}

// plausible reports whether the reference can name an object: a denied pod has not been validated yet.
func plausible(ref *corev1.ObjectReference) bool {
	return len(validation.IsDNS1123Subdomain(ref.Name)) == 0 && len(validation.IsDNS1035Label(strings.ToLower(ref.Kind))) == 0 &&
		len(ref.APIVersion) <= 2*validation.DNS1123SubdomainMaxLength && ref.UID != "" && len(ref.UID) <= 128
}
