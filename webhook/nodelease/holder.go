package nodelease

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// Duration is how long after its last renewal an agent is away.
	Duration = 30 * time.Second
	period   = 10 * time.Second // between two renewals
	check    = time.Second      // between two looks whether the agent enforces
)

// Labels select the Leases of all nodes.
func Labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "gpuslice", "app.kubernetes.io/component": "agent"}
}

// Name returns the name of a node's Lease.
func Name(node string) string { return "gpuslice-agent-" + node }

// Holder renews the Lease of one node.
type Holder struct {
	Client    kubernetes.Interface
	Namespace string
	Node      string
	Enforces  func() bool // the Lease is renewed only then
	Log       *slog.Logger
}

// Run renews the Lease until ctx ends.
func (h *Holder) Run(ctx context.Context) {
	tick := time.NewTicker(check)
	defer tick.Stop()
	var tried time.Time
	for {
		if time.Since(tried) >= period && h.Enforces() {
			tried = time.Now()
			if err := h.renew(ctx); err != nil && ctx.Err() == nil {
				h.Log.Warn("the Lease is not renewed", "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *Holder) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, period)
	defer cancel()
	leases := h.Client.CoordinationV1().Leases(h.Namespace)
	lease, err := leases.Get(ctx, Name(h.Node), metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if missing {
		lease, err = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Name(h.Node), Labels: Labels()}}, nil
	}
	if err != nil {
		return fmt.Errorf("read the Lease: %w", err)
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(h.Node), new(int32(Duration.Seconds()))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if missing {
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write the Lease: %w", err)
	}
	return nil
}
