package webhook

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// known is the ConfigMap of the state as the informer knows it, or nil.
func (c *Cluster) known() *corev1.ConfigMap {
	object, _, _ := c.watched.state.GetStore().GetByKey(c.system + "/" + StateName)
	m, _ := object.(*corev1.ConfigMap)
	return m
}

// saved is what that ConfigMap holds.
func (c *Cluster) saved() state {
	if m := c.known(); m != nil {
		return decodeState(m.Data)
	}
	return decodeState(nil)
}

// save writes the state where it differs from what the informer knows. It writes on the version that the informer
// knows: when another replica was faster the write fails, that replica's version arrives as a change, and the next
// rebuild decides on it.
func (c *Cluster) save(ctx context.Context, s state) error {
	data, full := s.encode()
	if data == nil {
		return full
	}
	known := c.known()
	if known != nil && maps.Equal(known.Data, data) {
		return full
	}
	if err := c.write(ctx, known, data); err != nil {
		return err
	}
	return full
}

// write creates the ConfigMap, or updates the version known. A conflict is no error: the informer is behind.
func (c *Cluster) write(ctx context.Context, known *corev1.ConfigMap, data map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, saveRetry)
	defer cancel()
	configMaps, err := c.client.CoreV1().ConfigMaps(c.system), error(nil)
	if known == nil {
		_, err = configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: StateName, Namespace: c.system}, Data: data,
		}, metav1.CreateOptions{})
	} else {
		updated := known.DeepCopy()
		updated.Data = data
		_, err = configMaps.Update(ctx, updated, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("write ConfigMap %s: %w", StateName, err)
	}
	return nil
}
