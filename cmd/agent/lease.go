package main

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
	leaseCheck    = time.Second      // between two looks whether the agent enforces
	leasePeriod   = 10 * time.Second // between two renewals
	leaseDuration = 30 * time.Second // after which the agent counts as away
)

// leaseName is the name of a node's Lease.
func leaseName(nodeName string) string { return "gpuslice-agent-" + nodeName }

// lease tells the cluster that the node's agent enforces.
type lease struct {
	client    kubernetes.Interface
	namespace string
	node      string
	enforces  func() bool // the Lease is renewed only then
	log       *slog.Logger
}

// run renews the Lease until ctx ends.
func (l *lease) run(ctx context.Context) {
	tick := time.NewTicker(leaseCheck)
	defer tick.Stop()
	var tried time.Time
	for {
		if time.Since(tried) >= leasePeriod && l.enforces() {
			tried = time.Now()
			if err := l.renew(ctx); err != nil && ctx.Err() == nil {
				l.log.Warn("the Lease is not renewed", "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (l *lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leasePeriod)
	defer cancel()
	leases := l.client.CoordinationV1().Leases(l.namespace)
	held, err := leases.Get(ctx, leaseName(l.node), metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if missing {
		held, err = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName(l.node), Labels: agentLabels()}}, nil
	}
	if err != nil {
		return fmt.Errorf("read the Lease: %w", err)
	}
	held.Spec.HolderIdentity, held.Spec.LeaseDurationSeconds = new(l.node), new(int32(leaseDuration.Seconds()))
	held.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if missing {
		_, err = leases.Create(ctx, held, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(ctx, held, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write the Lease: %w", err)
	}
	return nil
}

// agentLabels are the labels of the agent's objects.
func agentLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "gpuslice", "app.kubernetes.io/component": "agent"}
}
