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

	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/guard/ticks"
)

const (
	leasePeriod = 10 * time.Second // between two renewals
	leaseCheck  = time.Second      // between two looks whether the agent enforces
)

// leaseHolder renews the Lease of one node, for as long as the agent enforces, with its report on the node's pods.
type leaseHolder struct {
	client          kubernetes.Interface
	namespace, node string
	enforces        func() bool         // the Lease is renewed only then
	report          func() lease.Report // on the node's pods, now
	log             *slog.Logger
}

// run renews the Lease until ctx is done. A change of the gaps in enforcement is
// written at once.
func (h *leaseHolder) run(ctx context.Context) {
	var tried time.Time
	var written string
	for range ticks.Every(ctx, leaseCheck) {
		annotations := h.report().Annotations()
		if text := annotations[lease.AnnotationNotEnforced]; h.enforces() && (time.Since(tried) >= leasePeriod || text != written) {
			tried, written = time.Now(), text
			if err := h.renew(ctx, annotations); err != nil && ctx.Err() == nil {
				h.log.Warn("the Lease is not renewed", "error", err)
			}
		}
	}
}

func (h *leaseHolder) renew(ctx context.Context, annotations map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, leasePeriod)
	defer cancel()
	leases := h.client.CoordinationV1().Leases(h.namespace)
	found, err := leases.Get(ctx, lease.Name(h.node), metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if missing {
		found, err = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: lease.Name(h.node), Labels: lease.Labels()}}, nil
	}
	if err != nil {
		return fmt.Errorf("read the Lease: %w", err)
	}
	found.Spec.HolderIdentity, found.Spec.LeaseDurationSeconds = new(h.node), new(int32(lease.Duration.Seconds()))
	for name, text := range annotations {
		delete(found.Annotations, name)
		if text != "" {
			metav1.SetMetaDataAnnotation(&found.ObjectMeta, name, text)
		}
	}
	found.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if missing {
		_, err = leases.Create(ctx, found, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(ctx, found, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write the Lease: %w", err)
	}
	return nil
}
