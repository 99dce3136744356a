// Package keys keeps the keys that sign promises.
package keys

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// SecretName is the Secret of the system namespace with the keys by which replicas know each other's Promises.
const SecretName = "gpuslice-promise-keys"

// AnnotationRotate on that Secret, whatever its value, requests a new key; the one before it stays accepted.
const AnnotationRotate = api.Domain + "/rotate"

// Keys of the Secret: the one that signs, and the one that did before it.
const (
	keyCurrent  = "current"
	keyPrevious = "previous"
)

const (
	refreshPeriod    = 30 * time.Second
	minRefreshPeriod = time.Second // between two reads for Promises that no known key signed
	readTimeout      = 2 * time.Second
	keyBytes         = 32 // the least that promise.NewKeys takes
	maxTries         = 3
)

// Keyring keeps the keys that sign Promises, the same for all replicas. Whichever replica finds no Secret creates it; the
// others read it. Where the Secret is gone, a running replica restores the keys that it last read: without them every
// living pod would count as the whole devices that it names, and fill its quota.
type Keyring struct {
	client kubernetes.Interface
	system string
	log    logr.Logger

	keys      atomic.Pointer[promise.Keys]
	mu        sync.Mutex // held while the Secret is read
	attempted time.Time  // when it was last read, or could not be
	lastRead  map[string][]byte
}

// New prepares a Keyring. Run must be running for it to know any key.
func New(client kubernetes.Interface, system string, log logr.Logger) *Keyring {
	return &Keyring{client: client, system: system, log: log}
}

// Run keeps the keys up to date until ctx is done.
func (k *Keyring) Run(ctx context.Context) error {
	for {
		wait := refreshPeriod
		if err := k.refresh(ctx, 0); err != nil {
			wait = minRefreshPeriod
			k.log.Error(err, "keys not read", "retryAfter", wait.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// Of returns the keys in the Secret.
func Of(secret *corev1.Secret) promise.Keys {
	return promise.NewKeys(secret.Data[keyCurrent], secret.Data[keyPrevious])
}

// Ready returns why Promises cannot be signed yet; nil: they can.
func (k *Keyring) Ready() error {
	if k.keys.Load() == nil {
		return fmt.Errorf("the keys of Secret %s are not read yet", SecretName)
	}
	return nil
}

// Keys are the keys as last read; the zero Keys before that.
func (k *Keyring) Keys() promise.Keys {
	if keys := k.keys.Load(); keys != nil {
		return *keys
	}
	return promise.Keys{}
}

// Generation is a value that changes with the keys.
func (k *Keyring) Generation() any { return k.keys.Load() }

// PromiseOf is Keys.PromiseOf, with keys that are read again before a pod's Promise is not trusted:
// another replica may have signed with a key that is a second old.
func (k *Keyring) PromiseOf(ctx context.Context, pod *corev1.Pod) *promise.Promise {
	if pod.Annotations[api.AnnotationPromise] == "" {
		return nil
	}
	if p := k.Keys().PromiseOf(pod); p != nil {
		return p
	}
	if err := k.refresh(ctx, minRefreshPeriod); err != nil {
		k.log.Error(err, "keys not read again")
	}
	return k.Keys().PromiseOf(pod)
}

// refresh reads the Secret, unless that was tried within the time since.
func (k *Keyring) refresh(ctx context.Context, since time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.attempted) < since {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	defer func() { k.attempted = time.Now() }() // those who wait for the lock do not repeat a read that just failed
	for try := 1; ; try++ {
		secret, err := k.secret(ctx)
		switch {
		case err == nil:
			if k.lastRead == nil || !maps.EqualFunc(secret.Data, k.lastRead, bytes.Equal) {
				keys := Of(secret)
				k.keys.Store(&keys)
			}
			k.lastRead = secret.Data
			return nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err), try == maxTries:
			return err
		}
	}
}

// secret returns the Secret with a key that signs. It makes the Secret if there is none, and writes it if it requests a
// new key, has none, or was recreated by a replica that knew less than this one. A write after another replica's is
// an error like any other: the other replica's Secret is read next.
func (k *Keyring) secret(ctx context.Context) (*corev1.Secret, error) {
	secrets := k.client.CoreV1().Secrets(k.system)
	secret, err := secrets.Get(ctx, SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		data := k.lastRead
		if data == nil {
			data = map[string][]byte{keyCurrent: newKey()}
		}
		k.log.Info("creating the keys that sign promises", "secret", SecretName, "restored", k.lastRead != nil)
		return secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName, Namespace: k.system}, Data: data},
			metav1.CreateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", SecretName, err)
	}
	_, rotate := secret.Annotations[AnnotationRotate]
	data := k.wanted(secret.Data, rotate)
	if data == nil {
		return secret, nil
	}
	k.log.Info("writing the keys that sign promises", "secret", SecretName, "rotate", rotate)
	renewed := secret.DeepCopy()
	delete(renewed.Annotations, AnnotationRotate)
	renewed.Data = data
	return secrets.Update(ctx, renewed, metav1.UpdateOptions{})
}

// wanted is the content that the Secret should hold instead of its own; nil: its own. Keys that are new to this replica
// and have none before them were made from nothing: the key that was known signed all that lives, and is accepted on.
func (k *Keyring) wanted(have map[string][]byte, rotate bool) map[string][]byte {
	current, previous := have[keyCurrent], have[keyPrevious]
	usable := len(current) >= keyBytes
	unrelated := len(previous) == 0 && k.lastRead != nil && !bytes.Equal(current, k.lastRead[keyCurrent])
	switch {
	case !usable && k.lastRead != nil:
		return k.lastRead
	case !usable:
		return map[string][]byte{keyCurrent: newKey(), keyPrevious: previous}
	case unrelated:
		return map[string][]byte{keyCurrent: current, keyPrevious: k.lastRead[keyCurrent]}
	case rotate:
		return map[string][]byte{keyCurrent: newKey(), keyPrevious: current}
	}
	return nil
}

// newKey is as long as the hash it is for.
func newKey() []byte {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails: the process aborts instead
	return key
}
