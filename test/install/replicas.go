package install

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Again restarts a replica that has ended, on the same addresses.
func (i *Installation) Again(ctx context.Context, replica int) error {
	was := i.Replicas[replica]
	p, err := i.again(ctx, was.Reviews, was.Probes)
	if err != nil {
		return err
	}
	i.Replicas[replica] = p
	i.Webhook = i.Replicas[0]
	return nil
}

// Succeed starts a successor of a replica on addresses of its own, from another build ("": the same), and returns the
// replica that it takes the place of, which runs on. The API server knows neither.
func (i *Installation) Succeed(ctx context.Context, replica int, binary string) (was *Process, err error) {
	i.started++
	p, err := i.more(ctx, "successor-"+strconv.Itoa(i.started), cmp.Or(binary, i.binary))
	if err != nil {
		return nil, err
	}
	was, i.Replicas[replica] = i.Replicas[replica], p
	i.Webhook = i.Replicas[0]
	return was, nil
}

// TakeOver stops all replicas, and starts one of a build of ShiftedBinary, whose clock is this far ahead. It returns
// once the API server calls it, also if it is not ready for its clock.
func (i *Installation) TakeOver(ctx context.Context, binary string, ahead time.Duration) error {
	i.Stop()
	p, err := i.shifted(binary, ahead)
	if err != nil {
		return err
	}
	i.Replicas, i.Webhook = []*Process{p}, p
	if ahead == 0 {
		err = p.waitReady(ctx)
	} else {
		err = p.waitDiffers(ctx)
	}
	if err != nil {
		return err
	}
	if err := i.Server.SetEndpoints(ctx, api.SystemNamespace, service, p.Reviews); err != nil {
		return err
	}
	return i.Settle(ctx)
}

// Forget makes the webhook forget the pools and policies that it remembers: it ends, its state is deleted, and it
// restarts on the same addresses.
func (i *Installation) Forget(ctx context.Context) error {
	i.Webhook.Stop()
	err := i.Server.Client.CoreV1().ConfigMaps(api.SystemNamespace).Delete(ctx, "gpuslice-state", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the state: %w", err)
	}
	return i.Again(ctx, 0)
}

// Down ends the webhook, does what is to be done without it, and starts it again on the same addresses.
func (i *Installation) Down(ctx context.Context, without func()) error {
	i.Webhook.Kill()
	without()
	if err := i.Again(ctx, 0); err != nil {
		return err
	}
	return i.answered(ctx)
}
