package watcher

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// GuardFailures are those that every replica decides by, also those that are over.
func (w *Watcher) GuardFailures() guardaccess.Failures { return guardaccess.Of(w.state.configMap()) }

// SaveGuardFailures writes them for all replicas. An error: they are not written, because of another writer for instance.
func (w *Watcher) SaveGuardFailures(ctx context.Context, failures guardaccess.Failures) error {
	stored := w.state.configMap()
	if stored == nil {
		return errors.New("save failures of guards: no replica has saved its state yet")
	}
	ctx, cancel := context.WithTimeout(ctx, saveRetry)
	defer cancel()
	updated := stored.DeepCopy()
	updated.Annotations = maps.Clone(updated.Annotations)
	if updated.Annotations == nil {
		updated.Annotations = map[string]string{}
	}
	updated.Annotations[guardaccess.Annotation] = failures.Encode()
	if len(failures) == 0 {
		delete(updated.Annotations, guardaccess.Annotation)
	}
	_, err := w.options.Client.CoreV1().ConfigMaps(w.options.Namespace).Update(ctx, updated, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil // the informer is behind: its copy is compared again soon
	}
	if err != nil {
		return fmt.Errorf("save failures of guards in ConfigMap %s: %w", cluster.StateName, err)
	}
	return nil
}

// PoolOf is Snapshot's.
func (w *Watcher) PoolOf(node, resource string) string {
	if s := w.snapshot.Load(); s != nil {
		return s.PoolOf(node, resource)
	}
	return ""
}

// DeviceOf is Snapshot's.
func (w *Watcher) DeviceOf(node, resource, planned string) int64 {
	if s := w.snapshot.Load(); s != nil {
		return s.DeviceOf(node, resource, planned)
	}
	return 0
}
