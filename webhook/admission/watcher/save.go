package watcher

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// stateStore is the ConfigMap of the state.
type stateStore struct {
	client    kubernetes.Interface
	namespace string
	informer  cache.SharedIndexInformer
}

// configMap is the ConfigMap as the informer has it, or nil.
func (s stateStore) configMap() *corev1.ConfigMap {
	return cached[*corev1.ConfigMap](s.informer, s.namespace+"/"+cluster.StateName)
}

// save writes the state if it differs from the informer's. It writes on the informer's version: when another replica
// was faster the write fails, that replica's version arrives as a change, and the next rebuild decides on it.
func (s stateStore) save(ctx context.Context, wanted cluster.State) error {
	data, full := wanted.Encode()
	if data == nil {
		return full
	}
	stored := s.configMap()
	if stored != nil && maps.Equal(stored.Data, data) {
		return full
	}
	if err := s.write(ctx, stored, data); err != nil {
		return err
	}
	return full
}

// write creates the ConfigMap, or updates the version stored. A conflict is no error: the informer is behind.
func (s stateStore) write(ctx context.Context, stored *corev1.ConfigMap, data map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, saveRetry)
	defer cancel()
	configMaps := s.client.CoreV1().ConfigMaps(s.namespace)
	var err error
	if stored == nil {
		_, err = configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: cluster.StateName, Namespace: s.namespace}, Data: data,
		}, metav1.CreateOptions{})
	} else {
		updated := stored.DeepCopy()
		updated.Data = data
		_, err = configMaps.Update(ctx, updated, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("write ConfigMap %s: %w", cluster.StateName, err)
	}
	return nil
}
