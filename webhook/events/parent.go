package events

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	readTimeout = 2 * time.Second
	parentTTL   = 10 * time.Minute
)

// parent returns the controller of a pod's owner: the Deployment of a ReplicaSet, the CronJob of a Job. It returns nil
// for an owner that has none, is of another kind or cannot be read now. Each owner is read once in a while.
func (d *Denials) parent(ctx context.Context, owner *corev1.ObjectReference) *corev1.ObjectReference {
	read := d.reader(owner)
	if read == nil {
		return nil
	}
	if cached, ok := d.parents.Get(owner.UID); ok {
		return cached.(*corev1.ObjectReference)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	object, err := read(ctx)
	if err != nil {
		d.log.V(1).Info("cannot read owner", "object", owner.Kind+" "+owner.Namespace+"/"+owner.Name, "error", err.Error())
		return nil
	}
	var parent *corev1.ObjectReference
	if object.GetUID() == owner.UID { // a tenant may name an object that is not the pod's owner
		parent = ControllerOf(object)
	}
	d.parents.Add(owner.UID, parent, parentTTL)
	return parent
}

// reader returns what reads an owner of a kind that can have a controller itself; nil for other kinds.
func (d *Denials) reader(owner *corev1.ObjectReference) func(context.Context) (metav1.Object, error) {
	switch owner.GroupVersionKind().GroupKind().String() {
	case "ReplicaSet.apps":
		return func(ctx context.Context) (metav1.Object, error) {
			return d.client.AppsV1().ReplicaSets(owner.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		}
	case "Job.batch":
		return func(ctx context.Context) (metav1.Object, error) {
			return d.client.BatchV1().Jobs(owner.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		}
	}
	return nil
}
