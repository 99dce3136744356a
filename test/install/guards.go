package install

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// GuardFailures makes the webhook's state hold failures of guards, as the leader writes them. Settle waits until the webhook has
// read them.
func (i *Installation) GuardFailures(ctx context.Context, failures guardaccess.Failures) error {
	i.failures = failures
	if len(failures) == 0 {
		return nil
	}
	states := i.Server.Client.CoreV1().ConfigMaps(api.SystemNamespace)
	return i.Webhook.poll(ctx, "keep failures of guards", func() (bool, string) {
		state, err := states.Get(ctx, cluster.StateName, metav1.GetOptions{}) // a webhook that has just started has yet to write it
		if err != nil {
			return false, err.Error()
		}
		metav1.SetMetaDataAnnotation(&state.ObjectMeta, guardaccess.Annotation, failures.Encode())
		_, err = states.Update(ctx, state, metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// knows reports whether the webhook has read failures, whatever other guards reported.
func (s State) knows(failures guardaccess.Failures) bool {
	for _, one := range failures {
		if !slices.ContainsFunc(s.GuardFailures, func(have guardaccess.Failure) bool {
			return guardaccess.Failures{have}.Equal(guardaccess.Failures{one})
		}) {
			return false
		}
	}
	return true
}
