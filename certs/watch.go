package certs

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// watch sends to its channel when one of the configurations or the Secret has changed, until ctx ends; wait returns when it
// has stopped. That is a hint: checks read for themselves, and are made without it too. A Secret without a name
// is not watched.
func watch(ctx context.Context, c Configurations, s SharedSecret) (_ <-chan struct{}, wait func()) {
	changed := make(chan struct{}, 1)
	var watching sync.WaitGroup
	notice := func() {
		select {
		case changed <- struct{}{}:
		default: // a check is due already
		}
	}
	start := func(informer cache.SharedIndexInformer) {
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notice() }, UpdateFunc: func(_, _ any) { notice() }, DeleteFunc: func(any) { notice() },
		})
		watching.Go(func() { informer.RunWithContext(ctx) })
	}
	for _, name := range c.Mutating {
		start(admissioninformers.NewFilteredMutatingWebhookConfigurationInformer(c.Client, 0, nil, onlyNamed(name)))
	}
	for _, name := range c.Validating {
		start(admissioninformers.NewFilteredValidatingWebhookConfigurationInformer(c.Client, 0, nil, onlyNamed(name)))
	}
	if s.Name != "" {
		start(coreinformers.NewFilteredSecretInformer(c.Client, s.Namespace, 0, nil, onlyNamed(s.Name)))
	}
	return changed, watching.Wait
}

func onlyNamed(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}
