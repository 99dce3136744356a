package nodelease

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
)

const (
	// Duration is how long after its last renewal an agent is away.
	Duration = 30 * time.Second
	period   = 10 * time.Second // between two renewals
	check    = time.Second      // between two looks whether the agent enforces
)

// AnnotationNotEnforced is on a Lease: pod UID -> why the agent does not enforce that pod's slice, JSON.
const AnnotationNotEnforced = api.Domain + "/not-enforced"

// AnnotationUsed is on a Lease: pod UID -> the GPU memory that the pod uses, in MiB, JSON.
const AnnotationUsed = api.Domain + "/used"

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
	// NotEnforced returns by UID the pods whose slices the agent does not enforce all the same, with the reason of each; nil:
	// it enforces all.
	NotEnforced func() map[string]string
	// Used returns by UID the GPU memory that pods use now, in MiB, of all pods of which it was read; nil: none is.
	Used func() map[string]int64
	Log  *slog.Logger
}

// Run renews the Lease until ctx ends.
func (h *Holder) Run(ctx context.Context) {
	tick := time.NewTicker(check)
	defer tick.Stop()
	var tried time.Time
	var written string
	for {
		if text := h.notEnforced(); h.Enforces() && (time.Since(tried) >= period || text != written) {
			tried, written = time.Now(), text
			if err := h.renew(ctx, text); err != nil && ctx.Err() == nil {
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

// notEnforced returns the text of the annotation; empty: the Lease has none.
func (h *Holder) notEnforced() string {
	if h.NotEnforced == nil {
		return ""
	}
	reasons := h.NotEnforced()
	if len(reasons) == 0 {
		return ""
	}
	return encode(reasons)
}

// used returns the text of the other annotation; empty: the Lease has none.
func (h *Holder) used() string {
	if h.Used == nil {
		return ""
	}
	all := h.Used()
	if len(all) == 0 {
		return ""
	}
	return encode(all)
}

// encode returns a map as text, sorted by UID.
func encode[V string | int64](byUID map[string]V) string {
	text, err := json.Marshal(byUID)
	if err != nil {
		panic("encode what a Lease tells of pods: " + err.Error()) // texts and numbers
	}
	return string(text)
}

func (h *Holder) renew(ctx context.Context, notEnforced string) error {
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
	for name, text := range map[string]string{AnnotationNotEnforced: notEnforced, AnnotationUsed: h.used()} {
		delete(lease.Annotations, name)
		if text != "" {
			metav1.SetMetaDataAnnotation(&lease.ObjectMeta, name, text)
		}
	}
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
