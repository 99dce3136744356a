package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Source provides the serving certificate.
type Source interface {
	// Start keeps the certificate current until ctx is done. An error means that it cannot go on at all.
	Start(ctx context.Context) error
	// GetCertificate returns the certificate to serve, for tls.Config.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Ready returns why the certificate should not be served: nil when the API server will trust it.
	Ready() error
}

// Timing of a Source. Clocks are read again at each check, since a machine may have been suspended in between.
const (
	checkPeriod  = 20 * time.Second
	retryPeriod  = 2 * time.Second // after a check that failed
	checkTimeout = 15 * time.Second
	minPause     = time.Second // between two checks, however much changes
)

// DefaultPropagation is how long a new authority is in every configuration before a leaf of it is served: API servers
// learn of a change through a watch.
const DefaultPropagation = time.Minute

// errConflict is returned if another writer was first. The content that was read is out of date.
var errConflict = errors.New("another client wrote first")

// maxTries bounds the attempts to write before others do.
const maxTries = 5

// keepChecking checks until ctx is done: after each change of the configurations or the Secret, after every, and after
// retryPeriod where the last check failed.
func keepChecking(ctx context.Context, c Configurations, s SharedSecret,
	every time.Duration, check func(context.Context, time.Time) error) {
	changed, wait := watch(ctx, c, s)
	defer wait()
	for {
		bounded, cancel := context.WithTimeout(ctx, checkTimeout)
		err := check(bounded, wallClock())
		cancel()
		pause := every
		if err != nil {
			pause = min(pause, retryPeriod)
		}
		rest := min(pause, minPause)
		if !sleep(ctx, rest, nil) || !sleep(ctx, pause-rest, changed) {
			return
		}
	}
}

// sleep waits that long or until changed; false when ctx is done.
func sleep(ctx context.Context, pause time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

// wallClock is the time of day without a monotonic part, which does not advance while a machine is suspended.
func wallClock() time.Time { return time.Now().Round(0) }

// watch sends to its channel when one of the configurations or the Secret has changed, until ctx is done; wait returns when it
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
