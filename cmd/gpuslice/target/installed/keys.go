package installed

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/keys"
)

// Keys returns the keys by which the installation knows its promises.
func Keys(ctx context.Context, client kubernetes.Interface, system string) (promise.Keys, error) {
	secret, err := client.CoreV1().Secrets(system).Get(ctx, keys.SecretName, metav1.GetOptions{})
	if err != nil {
		return promise.Keys{}, fmt.Errorf("read Secret %s of namespace %s: %w", keys.SecretName, system, err)
	}
	return keys.Of(secret), nil
}
