// Package closedclasses writes on each namespace of which device classes nobody claims devices there, if policy denies
// claims of GPUs, since a pod is checked once, and a claim of its name can be recreated afterwards; or if the namespace
// fails open for claims. The API server reads it (deploy/58-claims.yaml), also while nothing of ours runs.
package closedclasses

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/leader"
)

// New returns the writer of the annotation. differ returns the namespaces whose annotation is not as it should be, with what it should be
// ("": there should be none), or an error while they are not known yet.
func New(client kubernetes.Interface, differ func() (map[string]string, error), log logr.Logger) *leader.Writer[string] {
	return &leader.Writer[string]{Period: time.Second, Differ: differ, Kind: "Namespace", Log: log,
		Failed: "the API server still admits claims of GPUs that are to be closed",
		Write: func(ctx context.Context, name, closed string) error {
			var value any // null removes it
			if closed != "" {
				value = closed
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{api.AnnotationClosedClasses: value}}})
			if err != nil {
				return err
			}
			if _, err := client.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				return fmt.Errorf("annotate namespace %s: %w", name, err)
			}
			log.Info("closed device classes written", "object", "Namespace "+name, "classes", closed)
			return nil
		}}
}
