package webhook

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies"
)

// KeysName is the Secret of the system namespace that holds the keys by which replicas know each other's Promises.
const KeysName = "gpuslice-promise-keys"

// AnnotationRotate on that Secret, whatever its value, asks for a new key; the one before it stays accepted.
const AnnotationRotate = policies.Domain + "/rotate"

// Keys of the Secret: the one that signs, and the one that did before it.
const (
	keyCurrent  = "current"
	keyPrevious = "previous"
)

const (
	keysEvery   = 30 * time.Second // between two looks at the Secret
	keysAnew    = time.Second      // between two that a Promise asks for which no known key signed
	keysWithin  = 2 * time.Second  // for one look
	keysLong    = policies.MinKey
	keysMostTry = 3
)

// Keyring keeps the keys that sign Promises, the same for all replicas. Whichever replica finds no Secret makes it; the
// others take what is there.
type Keyring struct {
	client kubernetes.Interface
	system string
	log    logr.Logger

	keys atomic.Pointer[policies.Keys]
	mu   sync.Mutex // held while the Secret is read
	read time.Time
}

// NewKeyring prepares a Keyring. Run must be running for it to know any key.
func NewKeyring(client kubernetes.Interface, system string, log logr.Logger) *Keyring {
	return &Keyring{client: client, system: system, log: log}
}

// Run keeps the keys up to date until ctx ends.
func (k *Keyring) Run(ctx context.Context) error {
	for {
		wait := keysEvery
		if err := k.refresh(ctx, 0); err != nil {
			wait = keysAnew
			k.log.Error(err, "keys not read", "retryAfter", wait.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// Ready says why Promises cannot be signed yet.
func (k *Keyring) Ready() error {
	if k.keys.Load() == nil {
		return fmt.Errorf("the keys of Secret %s are not read yet", KeysName)
	}
	return nil
}

// Keys are the keys as last read; the zero Keys before that.
func (k *Keyring) Keys() policies.Keys {
	if keys := k.keys.Load(); keys != nil {
		return *keys
	}
	return policies.Keys{}
}

// PromiseOf is Keys.PromiseOf, with keys that are read anew before a Promise that the pod holds is not trusted: another
// replica may have signed with a key that is a second old.
func (k *Keyring) PromiseOf(ctx context.Context, pod *corev1.Pod) *policies.Promise {
	if pod.Annotations[policies.AnnotationPromise] == "" {
		return nil
	}
	if p := k.Keys().PromiseOf(pod); p != nil {
		return p
	}
	if err := k.refresh(ctx, keysAnew); err != nil {
		k.log.Error(err, "keys not read anew")
	}
	return k.Keys().PromiseOf(pod)
}

// refresh reads the Secret, unless it was read within the time since.
func (k *Keyring) refresh(ctx context.Context, since time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.read) < since {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, keysWithin)
	defer cancel()
	for try := 1; ; try++ {
		secret, err := k.secret(ctx)
		switch {
		case err == nil:
			keys := policies.NewKeys(secret.Data[keyCurrent], secret.Data[keyPrevious])
			k.keys.Store(&keys)
			k.read = time.Now()
			return nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err), try == keysMostTry:
			return err
		}
	}
}

// secret returns the Secret with a key that signs, and makes or renews one where there is none or where it asks for a new
// one. A write that another replica was faster with is an error like any other: what it wrote is read next.
func (k *Keyring) secret(ctx context.Context) (*corev1.Secret, error) {
	secrets := k.client.CoreV1().Secrets(k.system)
	secret, err := secrets.Get(ctx, KeysName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		k.log.Info("making the key that signs promises", "secret", KeysName)
		return secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: KeysName, Namespace: k.system}, Data: map[string][]byte{keyCurrent: newKey()},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", KeysName, err)
	}
	_, asked := secret.Annotations[AnnotationRotate]
	usable := len(secret.Data[keyCurrent]) >= keysLong
	if usable && !asked {
		return secret, nil
	}
	k.log.Info("making a new key that signs promises", "secret", KeysName, "asked", asked)
	renewed := secret.DeepCopy()
	delete(renewed.Annotations, AnnotationRotate)
	renewed.Data = map[string][]byte{keyCurrent: newKey(), keyPrevious: secret.Data[keyPrevious]}
	if usable {
		renewed.Data[keyPrevious] = secret.Data[keyCurrent]
	}
	return secrets.Update(ctx, renewed, metav1.UpdateOptions{})
}

// newKey is as long as the hash it is for.
func newKey() []byte {
	key := make([]byte, keysLong)
	_, _ = rand.Read(key) // never fails: the process ends instead
	return key
}
