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
)

// interval is how late a bypass may end.
const syncPeriod = 10 * time.Second

// Options are what a Keeper is made of.
type Options struct {
	Client kubernetes.Interface
	// Namespaces knows the cluster's namespaces with their labels. Somebody else runs it; it is only read.
	Namespaces cache.SharedIndexInformer
	// Registerer gets the metrics.
	Registerer prometheus.Registerer
	Log        logr.Logger
}

// Keeper ends bypasses. Two that run at once do no harm: a namespace is changed only as it was read.
type Keeper struct {
	options   Options
	gauges    *gauges
	announced map[string]time.Time // when the bypasses end that an Event was written about, by namespace
}

// New prepares a Keeper and registers its metrics.
func New(o Options) (*Keeper, error) {
	k := &Keeper{options: o, gauges: newGauges(), announced: map[string]time.Time{}}
	for _, c := range []prometheus.Collector{k.gauges.info, k.gauges.end} {
		if err := o.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of bypasses: %w", err)
		}
	}
	return k, nil
}

// Run looks after bypasses until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.gauges.set(nil)
	again := time.NewTicker(syncPeriod)
	defer again.Stop()
	for {
		k.sync(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
}

// pass looks once at every namespace that carries the label.
func (k *Keeper) sync(ctx context.Context) {
	standing := map[string]time.Time{}
	for _, name := range k.bypassed() {
		until, err := k.reconcile(ctx, name)
		if err != nil && ctx.Err() == nil {
			k.options.Log.Error(err, "bypass not looked after", "namespace", name)
		}
		if !until.IsZero() {
			standing[name] = until
		}
	}
	k.gauges.set(standing)
	maps.DeleteFunc(k.announced, func(name string, until time.Time) bool { return !standing[name].Equal(until) })
}

// labelled are the namespaces that carry the label as far as the informer knows.
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

// look reads a namespace and does what is due: it ends a bypass whose time has passed, and gives an end to one that has
// none or one too far away. It returns when the bypass ends, zero where there is none any more.
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
	case b.Until.IsZero() || b.Until.After(latest.Add(time.Minute)): // the clock of whoever wrote it may be a little ahead
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

// bound writes an end.
func (k *Keeper) limit(ctx context.Context, ns *corev1.Namespace, b policies.Bypass) error {
	until := policies.AnnotationBypassUntil
	if err := k.patch(ctx, ns, nil, map[string]any{until: b.Annotations()[until]}); err != nil {
		return fmt.Errorf("give the bypass an end: %w", err)
	}
	k.options.Log.Info("bypass bounded", "namespace", ns.Name, "until", b.Until)
	return k.announce(ctx, ns, b)
}

// begun tells of a bypass once.
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

// end takes the bypass away.
func (k *Keeper) end(ctx context.Context, ns *corev1.Namespace, b policies.Bypass) error {
	annotations := map[string]any{}
	for name := range b.Annotations() {
		annotations[name] = nil
	}
	if err := k.patch(ctx, ns, map[string]any{policies.LabelBypass: nil}, annotations); err != nil {
		return fmt.Errorf("end the bypass: %w", err)
	}
	k.options.Log.Info("bypass ended", "namespace", ns.Name, "until", b.Until, "by", b.By, "reason", b.Reason)
	return k.writeEvent(ctx, ns, b, reasonEnded)
}

// patch changes labels and annotations of the namespace, unless it changed since it was read: then the next pass looks
// at it again.
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
