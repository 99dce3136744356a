package bypass

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/leader"
)

// syncPeriod is how late a bypass may end.
const syncPeriod = 10 * time.Second

// Options configure a Keeper.
type Options struct {
	Client kubernetes.Interface
	// Namespaces lists the cluster's namespaces. The caller runs it.
	Namespaces cache.SharedIndexInformer
	Registerer prometheus.Registerer
	Log        logr.Logger
}

// Keeper ends bypasses. Two that run at once do no harm: a namespace is patched only in the version that was read.
type Keeper struct {
	options   Options
	gauges    *gauges
	announced map[string]time.Time // by namespace, the end of the bypass that an Event was written about
}

// New prepares a Keeper and registers its metrics.
func New(o Options) (*Keeper, error) {
	k := &Keeper{options: o, gauges: newGauges(), announced: map[string]time.Time{}}
	for _, c := range []prometheus.Collector{k.gauges.info, k.gauges.end} {
		if err := o.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the bypass metrics: %w", err)
		}
	}
	return k, nil
}

// Run ends bypasses until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.gauges.set(nil)
	leader.Every(ctx, syncPeriod, k.sync)
	return nil
}

// sync reconciles every namespace that carries the label.
func (k *Keeper) sync(ctx context.Context) {
	active := map[string]time.Time{}
	for _, name := range k.bypassed() {
		until, err := k.reconcile(ctx, name)
		if err != nil && ctx.Err() == nil {
			k.options.Log.Error(err, "cannot reconcile bypass", "object", "Namespace "+name)
		}
		if !until.IsZero() {
			active[name] = until
		}
	}
	k.gauges.set(active)
	maps.DeleteFunc(k.announced, func(name string, until time.Time) bool { return !active[name].Equal(until) })
}

// bypassed returns the namespaces that carry the label, from the informer.
func (k *Keeper) bypassed() (names []string) {
	for _, object := range k.options.Namespaces.GetStore().List() {
		if ns, ok := object.(*corev1.Namespace); ok {
			if _, bypassed := policies.BypassOf(ns.Labels, nil); bypassed {
				names = append(names, ns.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// reconcile reads a namespace. It ends a bypass whose time has passed, and limits one that has no end or too late a one.
// It returns when the bypass ends; the zero time for none.
func (k *Keeper) reconcile(ctx context.Context, name string) (time.Time, error) {
	ns, err := k.options.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read namespace: %w", err)
	}
	b, ok := policies.BypassOf(ns.Labels, ns.Annotations)
	now := time.Now()
	latest := now.Add(policies.MaxBypass).Truncate(time.Second) // as it is written
	switch {
	case !ok:
		return time.Time{}, nil
	case b.Until.IsZero() || b.Until.After(latest.Add(time.Minute)): // the clock of its author may be a little ahead
		b.Until = latest
		return latest, k.limit(ctx, ns, b)
	case b.Until.After(now):
		return b.Until, k.announce(ctx, ns, b)
	}
	if err := k.end(ctx, ns, b); err != nil {
		return b.Until, err
	}
	return time.Time{}, nil
}

// limit writes the end of a bypass.
func (k *Keeper) limit(ctx context.Context, ns *corev1.Namespace, b policies.Bypass) error {
	until := api.AnnotationBypassUntil
	if err := k.patch(ctx, ns, nil, map[string]any{until: b.Annotations()[until]}); err != nil {
		return fmt.Errorf("limit the bypass: %w", err)
	}
	k.options.Log.Info("limited bypass", "object", "Namespace "+ns.Name, "until", b.Until)
	return k.announce(ctx, ns, b)
}

// announce writes an Event about a bypass once.
func (k *Keeper) announce(ctx context.Context, ns *corev1.Namespace, b policies.Bypass) error {
	if k.announced[ns.Name].Equal(b.Until) {
		return nil
	}
	if err := k.writeEvent(ctx, ns, b, reasonBypassed); err != nil {
		return err
	}
	k.announced[ns.Name] = b.Until
	return nil
}

// end removes the bypass.
func (k *Keeper) end(ctx context.Context, ns *corev1.Namespace, b policies.Bypass) error {
	annotations := map[string]any{}
	for name := range b.Annotations() {
		annotations[name] = nil
	}
	if err := k.patch(ctx, ns, map[string]any{api.LabelBypass: nil}, annotations); err != nil {
		return fmt.Errorf("end the bypass: %w", err)
	}
	k.options.Log.Info("ended bypass", "object", "Namespace "+ns.Name, "until", b.Until, "by", b.By, "reason", b.Reason)
	return k.writeEvent(ctx, ns, b, reasonEnded)
}

// patch changes labels and annotations of the namespace in the version that was read: after a conflict the next sync reads
// it again.
func (k *Keeper) patch(ctx context.Context, ns *corev1.Namespace, labels, annotations map[string]any) error {
	metadata := map[string]any{"resourceVersion": ns.ResourceVersion, "annotations": annotations}
	if labels != nil {
		metadata["labels"] = labels
	}
	change, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = k.options.Client.CoreV1().Namespaces().Patch(ctx, ns.Name, types.MergePatchType, change, metav1.PatchOptions{})
	return err
}
