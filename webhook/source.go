package webhook

import (
	"context"

	"github.com/gpuslice/gpuslice/policies"
)

// Source knows what decisions depend on beside the pod.
type Source interface {
	// Input returns everything but the pod for a namespace: its labels, its policy, and the pools. An error means that
	// the namespace cannot be read now; a broken policy is not an error but the Input's PolicyError.
	Input(ctx context.Context, namespace string) (policies.Input, error)
}
