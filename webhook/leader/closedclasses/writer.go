// Package closedclasses writes on each namespace of which device classes nobody claims devices there, if policy denies
// claims of GPUs, since a pod is checked once, and a claim of its name can be recreated afterwards; or if the namespace
// fails open for claims. The API server reads it (deploy/58-claims.yaml), also while nothing of ours runs.
package closedclasses

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/leader"
)

const (
	syncPeriod  = time.Second // between two comparisons of the cache with policies
	callTimeout = 5 * time.Second
)

// Writer writes the annotation. Run it in one replica at a time.
type Writer struct {
	Client kubernetes.Interface
	// Namespaces are those whose annotation is not as it should be, with what it should be ("": there should be none). An error: they are
	// not known yet.
	Namespaces func() (map[string]string, error)
	Log        logr.Logger

	logged string // the last error
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	leader.Every(ctx, syncPeriod, w.sync)
	return nil
}

// sync writes the differences. The next sync repeats failed writes, and logs a failure once.
func (w *Writer) sync(ctx context.Context) {
	all, err := w.Namespaces()
	if err != nil {
		return
	}
	failed := ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		err := w.write(ctx, name, all[name])
		if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil {
			continue
		}
		if failed = err.Error(); failed != w.logged {
			w.Log.Error(err, "the API server still admits claims of GPUs that are to be closed", "object", "Namespace "+name)
		}
	}
	w.logged = failed
}

func (w *Writer) write(ctx context.Context, name, closed string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var value any
	if closed != "" {
		value = closed
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{api.AnnotationClosedClasses: value}}})
	if err != nil {
		return err
	}
	if _, err := w.Client.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("annotate namespace %s: %w", name, err)
	}
	w.Log.Info("closed device classes written", "object", "Namespace "+name, "classes", closed)
	return nil
}
