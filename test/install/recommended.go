package install

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
)

// Recommend writes recommended sizes as the leader does, and returns once every replica of the webhook has read them.
func (i *Installation) Recommend(ctx context.Context, sizes []advice.Recommendation) error {
	written := time.Now().UTC().Truncate(time.Second)
	texts, leftOut, err := advice.Encode(written, sizes)
	if err != nil || leftOut > 0 {
		return fmt.Errorf("recommend %d sizes: %d left out: %w", len(sizes), leftOut, err)
	}
	maps := i.Server.Client.CoreV1().ConfigMaps(api.SystemNamespace)
	for n, text := range texts {
		m := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: fmt.Sprint(advice.NamePrefix, n),
				Labels: map[string]string{advice.Label: "true"}},
			Data: map[string]string{advice.Key: text},
		}
		_, err := maps.Create(ctx, m, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
		}
		if err != nil {
			return fmt.Errorf("write recommended sizes: %w", err)
		}
	}
	for _, p := range i.Replicas {
		if err := p.WaitState(ctx, "read the recommended sizes", func(s State) bool { return !s.SizesWritten.Before(written) }); err != nil {
			return err
		}
	}
	return nil
}
