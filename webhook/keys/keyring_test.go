package keys

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// promisedBy is a pod with a Promise that the keyring signed.
func promisedBy(k *Keyring) *corev1.Pod {
	p := &promise.Promise{Version: promise.Version, Namespace: "team-a", Charge: quota.Charge{Slices: 1}}
	k.Keys().Sign(p)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Annotations: map[string]string{api.AnnotationPromise: p.Encode()}}}
}

func TestKeyring(t *testing.T) {
	t.Run("replicas share their keys", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset()
			one, two := New(client, "sys", logr.Discard()), New(client, "sys", logr.Discard())
			if one.Ready() == nil || one.PromiseOf(t.Context(), promisedBy(one)) != nil {
				t.Fatal("ready, or trusting, without a key")
			}
			for _, k := range []*Keyring{one, two} {
				if err := k.refresh(t.Context(), 0); err != nil || k.Ready() != nil {
					t.Fatal(err, k.Ready())
				}
			}
			if two.PromiseOf(t.Context(), promisedBy(one)) == nil {
				t.Fatal("one replica does not trust the other")
			}
			before := promisedBy(one)

			secret, err := client.CoreV1().Secrets("sys").Get(t.Context(), SecretName, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			secret.Annotations = map[string]string{AnnotationRotate: "now"}
			if _, err := client.CoreV1().Secrets("sys").Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := one.refresh(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			after := promisedBy(one)
			if before.Annotations[api.AnnotationPromise] == after.Annotations[api.AnnotationPromise] {
				t.Fatal("the key was not replaced")
			}
			time.Sleep(2 * minRefreshPeriod)
			if two.PromiseOf(t.Context(), after) == nil {
				t.Error("a replica that has not seen the new key does not trust what it signed")
			}
			for _, k := range []*Keyring{one, two} {
				if k.PromiseOf(t.Context(), before) == nil {
					t.Error("the key before is not accepted any more")
				}
			}
			if secret, _ = client.CoreV1().Secrets("sys").Get(t.Context(), SecretName, metav1.GetOptions{}); len(secret.Annotations) > 0 {
				t.Error("it will be replaced again and again")
			}
		})
	})
	// how keys are taken away that others know.
	t.Run("both keys replaced by hand end the trust in those before", func(t *testing.T) {
		client := fake.NewClientset()
		k := New(client, "sys", logr.Discard())
		if err := k.refresh(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		before := promisedBy(k)
		own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName, Namespace: "sys"},
			Data: map[string][]byte{keyCurrent: newKey(), keyPrevious: newKey()}}
		if _, err := client.CoreV1().Secrets("sys").Update(t.Context(), own, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := k.refresh(t.Context(), 0); err != nil || k.PromiseOf(t.Context(), before) != nil {
			t.Errorf("what the old key signed is trusted on (%v)", err)
		}
	})
}

// TestKeyringLostSecret: without them all that lives would count as whole devices.
func TestKeyringLostSecret(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, client *fake.Clientset){
		"deleted": func(t *testing.T, client *fake.Clientset) {
			if err := client.CoreV1().Secrets("sys").Delete(t.Context(), SecretName, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"deleted, and made by a replica that starts": func(t *testing.T, client *fake.Clientset) {
			if err := client.CoreV1().Secrets("sys").Delete(t.Context(), SecretName, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := New(client, "sys", logr.Discard()).refresh(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		},
		"emptied": func(t *testing.T, client *fake.Clientset) {
			empty := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName, Namespace: "sys"}}
			if _, err := client.CoreV1().Secrets("sys").Update(t.Context(), empty, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			k := New(client, "sys", logr.Discard())
			if err := k.refresh(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			before := promisedBy(k)
			lose(t, client)
			if err := k.refresh(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			later := New(client, "sys", logr.Discard())
			if err := later.refresh(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			for who, ring := range map[string]*Keyring{"it": k, "a replica that starts later": later} {
				if ring.PromiseOf(t.Context(), before) == nil {
					t.Errorf("%s does not trust what was signed before", who)
				}
			}
			if later.PromiseOf(t.Context(), promisedBy(k)) == nil || k.PromiseOf(t.Context(), promisedBy(later)) == nil {
				t.Error("the replicas do not trust each other")
			}
		})
	}
}

func TestKeyringPromiseOf(t *testing.T) {
	t.Run("a Secret that cannot be read is read once a second", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("get", "secrets",
				func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("down") })
			k, signer := New(client, "sys", logr.Discard()), New(fake.NewClientset(), "sys", logr.Discard())
			if err := signer.refresh(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			for range 100 {
				k.PromiseOf(t.Context(), promisedBy(signer))
			}
			if n := len(client.Actions()); n != 1 {
				t.Errorf("%d calls to an API server that does not answer", n)
			}
		})
	})
	t.Run("a broken key is replaced, and forgeries cost one read a second", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName, Namespace: "sys"},
				Data: map[string][]byte{keyCurrent: []byte("short")}})
			k := New(client, "sys", logr.Discard())
			if err := k.refresh(t.Context(), 0); err != nil || !k.Keys().Signs() {
				t.Fatalf("no key: %v", err)
			}
			client.ClearActions()
			forged := promisedBy(New(client, "sys", logr.Discard()))
			for range 100 {
				if k.PromiseOf(t.Context(), forged) != nil {
					t.Fatal("a forgery is trusted")
				}
			}
			if n := len(client.Actions()); n > 1 {
				t.Errorf("%d calls to the API server within a second", n)
			}
		})
	})
}
