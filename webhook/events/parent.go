package events

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	lookWithin     = 2 * time.Second
	rememberParent = 10 * time.Minute
)

// parent is what controls the owner of a pod: the Deployment of a ReplicaSet, the CronJob of a Job; nil: nothing does, or
// it cannot be told now. Only these two kinds are looked up, and each once in a while.
func (r *Denials) parent(ctx context.Context, owner *corev1.ObjectReference) *corev1.ObjectReference {
	read := r.reader(owner)
	if read == nil {
		return nil
	}
	if known, ok := r.parents.Get(owner.UID); ok {
		return known.(*corev1.ObjectReference)
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	object, err := read(ctx)
	if err != nil {
		r.log.V(1).Info("owner not read", "kind", owner.Kind, "namespace", owner.Namespace, "name", owner.Name, "error", err.Error())
		return nil
	}
	var parent *corev1.ObjectReference
	if object.GetUID() == owner.UID { // else the reference names another's object
		parent = ControllerOf(object)
	}
	r.parents.Add(owner.UID, parent, rememberParent)
	return parent
}

// reader reads an owner of a kind that has owners itself; nil: it is of another kind.
func (r *Denials) reader(owner *corev1.ObjectReference) func(context.Context) (metav1.Object, error) {
	switch owner.GroupVersionKind().GroupKind().String() {
	case "ReplicaSet.apps":
		return func(ctx context.Context) (metav1.Object, error) {
			return r.client.AppsV1().ReplicaSets(owner.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		}
	case "Job.batch":
		return func(ctx context.Context) (metav1.Object, error) {
			return r.client.BatchV1().Jobs(owner.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		}
	}
	return nil
}
