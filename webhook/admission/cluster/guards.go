package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		return fmt.Errorf("save failures of guards in ConfigMap %s: %w", StateName, err)
	}
	return nil
}

// PoolOf is the name of the pool in which a node offers a resource; "": there is none.
func (w *Watcher) PoolOf(node, resource string) string {
	snapshot := w.snapshot.Load()
	if snapshot == nil {
		return ""
	}
	return snapshot.places()[place{node, resource}]
}

// DeviceOf is the memory of a GPU, in MiB, of the pool in which a node offers a resource, or of the pool that was planned where that is
// none; 0: it is not known.
func (w *Watcher) DeviceOf(node, resource, planned string) int64 {
	snapshot, name := w.snapshot.Load(), cmp.Or(w.PoolOf(node, resource), planned)
	if snapshot == nil {
		return 0
	}
	for i := range snapshot.pools {
		if snapshot.pools[i].Name == name {
			return int64(snapshot.pools[i].DeviceMemory)
		}
	}
	return 0
}
