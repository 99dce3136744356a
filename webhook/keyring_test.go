package webhook

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies"
)

// promisedBy is a pod with a Promise that the keyring signed.
func promisedBy(k *Keyring) *corev1.Pod {
	p := &policies.Promise{Version: policies.PromiseVersion, Namespace: "team-a", Charge: policies.Charge{Slices: 1}}
	k.Keys().Sign(p)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Annotations: map[string]string{policies.AnnotationPromise: p.Encode()}}}
}

func TestReplicasShareTheirKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		one, two := NewKeyring(client, "sys", logr.Discard()), NewKeyring(client, "sys", logr.Discard())
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

		secret, err := client.CoreV1().Secrets("sys").Get(t.Context(), KeysName, metav1.GetOptions{})
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
		if before.Annotations[policies.AnnotationPromise] == after.Annotations[policies.AnnotationPromise] {
			t.Fatal("the key was not replaced")
		}
		time.Sleep(2 * keysAnew)
		if two.PromiseOf(t.Context(), after) == nil {
			t.Error("a replica that has not seen the new key refuses what it signed")
		}
		for _, k := range []*Keyring{one, two} {
			if k.PromiseOf(t.Context(), before) == nil {
				t.Error("the key before is not accepted any more")
			}
		}
		if secret, _ = client.CoreV1().Secrets("sys").Get(t.Context(), KeysName, metav1.GetOptions{}); len(secret.Annotations) > 0 {
			t.Error("it will be replaced again and again")
		}
	})
}

func TestASpoiltKeyIsReplacedAndForgeriesCostOneReadASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: KeysName, Namespace: "sys"},
			Data: map[string][]byte{keyCurrent: []byte("short")}})
		k := NewKeyring(client, "sys", logr.Discard())
		if err := k.refresh(t.Context(), 0); err != nil || !k.Keys().Signs() {
			t.Fatalf("no key: %v", err)
		}
		client.ClearActions()
		forged := promisedBy(NewKeyring(client, "sys", logr.Discard()))
		for range 100 {
			if k.PromiseOf(t.Context(), forged) != nil {
				t.Fatal("a forgery is trusted")
			}
		}
		if n := len(client.Actions()); n > 1 {
			t.Errorf("%d calls to the API server within a second", n)
		}
	})
}
