package certs

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// watch sends to its channel when one of the configurations or the Secret has changed, until ctx ends; wait returns when it
// has stopped. That is a hint: checks read for themselves, and are made without it too. A Secret without a name
// is not watched.
func watch(ctx context.Context, c Configurations, s SharedSecret) (_ <-chan struct{}, wait func()) {
	changed := make(chan struct{}, 1)
	var watching sync.WaitGroup
	start := func(name, namespace string, kind func(informers.SharedInformerFactory) cache.SharedIndexInformer) {
		informer := kind(informers.NewSharedInformerFactoryWithOptions(c.Client, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
			})))
		notice := func() {
			select {
			case changed <- struct{}{}:
			default: // a check is due already
			}
		}
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notice() }, UpdateFunc: func(_, _ any) { notice() }, DeleteFunc: func(any) { notice() },
		})
		watching.Go(func() { informer.RunWithContext(ctx) })
	}
	for _, name := range c.Mutating {
		start(name, "", func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Admissionregistration().V1().MutatingWebhookConfigurations().Informer()
		})
	}
	for _, name := range c.Validating {
		start(name, "", func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer()
		})
	}
	if s.Name != "" {
		start(s.Name, s.Namespace, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
			return f.Core().V1().Secrets().Informer()
		})
	}
	return changed, watching.Wait
}
