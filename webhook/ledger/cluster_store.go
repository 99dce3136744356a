package ledger

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// documentKey is the key of the document in a ledger's ConfigMap.
const documentKey = "ledger.json"

// ClusterStore stores each ledger in a ConfigMap of the system namespace. Its client should have no rate limit, or one far
// above ten calls a second for each busy budget.
type ClusterStore struct {
	Client    kubernetes.Interface
	Namespace string
}

// Get implements Store.
func (s ClusterStore) Get(ctx context.Context, name string) (Object, error) {
	found, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	return objectOf(found), classify(err)
}

// Create implements Store.
func (s ClusterStore) Create(ctx context.Context, o Object) (Object, error) {
	created, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Create(ctx, s.configMap(o), metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return Object{}, fmt.Errorf("namespace %s: %w: %w", s.Namespace, ErrRejected, err)
	}
	return objectOf(created), classify(err)
}

// Update implements Store.
func (s ClusterStore) Update(ctx context.Context, o Object) (Object, error) {
	updated, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Update(ctx, s.configMap(o), metav1.UpdateOptions{})
	return objectOf(updated), classify(err)
}

func (s ClusterStore) configMap(o Object) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.Name, Namespace: s.Namespace, ResourceVersion: o.Version,
			Labels: map[string]string{Label: "true"},
		},
		Data: map[string]string{documentKey: string(o.Data), "budget": o.Budget},
	}
}

func objectOf(c *corev1.ConfigMap) Object {
	if c == nil {
		return Object{}
	}
	return Object{Name: c.Name, UID: string(c.UID), Version: c.ResourceVersion, Budget: c.Data["budget"], Data: []byte(c.Data[documentKey])}
}

// classify wraps the error of a call in one of the package's errors. Unless the API server rejected the call explicitly, it
// may have taken effect.
func classify(err error) error {
	if err == nil {
		return nil
	}
	kind := ErrUnknown
	switch {
	case apierrors.IsNotFound(err):
		kind = ErrNotFound
	case apierrors.IsAlreadyExists(err):
		kind = ErrExists
	case apierrors.IsConflict(err):
		kind = ErrConflict
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		kind = ErrRejected
	}
	return fmt.Errorf("%w: %w", kind, err)
}
