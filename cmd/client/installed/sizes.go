package installed

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/sizing/advice"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
)

// Sizes returns the recommended sizes that count; nil: there are none. Who may not read the leader's ConfigMaps gets those of the
// namespace from the webhook (Report); "": of all namespaces, which takes the right.
func Sizes(ctx context.Context, client kubernetes.Interface, system, namespace string, now time.Time) (*advice.Book, error) {
	var texts []string
	documents, err := Advice(ctx, client, system)
	switch {
	case apierrors.IsForbidden(err) && namespace != "":
		text, unanswered := Report(ctx, client, namespace, budgets.ReportSizes)
		if unanswered != nil {
			return nil, fmt.Errorf("%w; and from the webhook, which takes the right to create pods: %w", err, unanswered)
		}
		texts = []string{string(text)}
	case err != nil:
		return nil, err
	}
	for _, d := range documents {
		texts = append(texts, d.Data[advice.Key])
	}
	book, err := advice.Decode(texts)
	if err != nil || !book.Current(now) {
		return nil, err
	}
	return book, nil
}
