package rotation

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gpuslice/gpuslice/certs"
	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/guard/ticks"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// mounted is the Secret that cert-manager writes and pods mount.
const mounted = "gpuslice-webhook-tls"

// kubelet keeps a Secret in a folder as the kubelet does: all files change together, some time after the Secret.
type kubelet struct {
	dir  string
	late time.Duration
}

func (k kubelet) path(key string) string { return filepath.Join(k.dir, "..data", key) }

// run follows the Secret until ctx ends.
func (k kubelet) run(ctx context.Context, t *testing.T, l *lab) {
	var seen map[string][]byte
	for n := 0; ; {
		found, err := l.server.Client.CoreV1().Secrets(system).Get(ctx, mounted, metav1.GetOptions{})
		if err == nil && !bytes.Equal(found.Data["tls.crt"], seen["tls.crt"]) && len(found.Data["ca.crt"]) > 0 {
			if seen != nil && !ticks.Sleep(ctx, k.late) {
				return
			}
			seen, n = found.Data, n+1
			if err := k.write(n, found); err != nil {
				t.Error(err)
				return
			}
		}
		if !ticks.Sleep(ctx, 100*time.Millisecond) {
			return
		}
	}
}

func (k kubelet) write(n int, from *corev1.Secret) error {
	folder := filepath.Join(k.dir, strconv.Itoa(n))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	for key, value := range from.Data {
		if err := os.WriteFile(filepath.Join(folder, key), value, 0o600); err != nil {
			return err
		}
	}
	if err := os.Symlink(folder, folder+".link"); err != nil {
		return err
	}
	return os.Rename(folder+".link", filepath.Join(k.dir, "..data"))
}

// mount runs a kubelet and waits for its first files.
func (l *lab) mount(t *testing.T, late time.Duration) kubelet {
	t.Helper()
	k := kubelet{t.TempDir(), late}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); k.run(ctx, t, l) }()
	t.Cleanup(func() { stop(); <-done })
	await(t, "cert-manager issues the certificate", time.Minute, func() bool {
		_, err := os.Stat(k.path("ca.crt"))
		return err == nil
	})
	return k
}

func (l *lab) certManager(t *testing.T, at int, k kubelet) certs.Source {
	t.Helper()
	client := l.client(t, at)
	source, err := certs.FromFiles(certs.MountedOptions{
		Certificate: k.path("tls.crt"), Key: k.path("tls.key"), Configurations: configurations(client), Propagation: 3 * time.Second,
		Announce: &certs.Announcement{Secret: secret(client), Authority: k.path("ca.crt")},
		Metrics:  certs.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// renew asks cert-manager for a new certificate, as cmctl does, and waits until there is one.
func (l *lab) renew(t *testing.T, certificate, into string) {
	t.Helper()
	before, err := l.server.Client.CoreV1().Secrets(system).Get(t.Context(), into, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(l.server.Config)
	if err != nil {
		t.Fatal(err)
	}
	api := client.Resource(schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}).Namespace(system)
	await(t, "the wish is taken", 10*time.Second, func() bool {
		found, err := api.Get(t.Context(), certificate, metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
		conditions = append(conditions, map[string]any{"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "by a test",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)})
		if err := unstructured.SetNestedSlice(found.Object, conditions, "status", "conditions"); err != nil {
			t.Fatal(err)
		}
		_, err = api.UpdateStatus(t.Context(), found, metav1.UpdateOptions{})
		return err == nil
	})
	await(t, certificate+" is issued anew", 30*time.Second, func() bool {
		after, err := l.server.Client.CoreV1().Secrets(system).Get(t.Context(), into, metav1.GetOptions{})
		return err == nil && !bytes.Equal(after.Data["tls.crt"], before.Data["tls.crt"])
	})
}

// newCertManagerLab has cert-manager running, and what the shipped manifest asks of it.
func newCertManagerLab(t *testing.T, inject map[string]string) *lab {
	t.Helper()
	l := newLab(t, cluster.CertManager()...)
	l.certManagerTypes(t)
	manifest, err := deploy.Files.ReadFile("certmanager/certificate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.apply.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	// From 1.19 on the cainjector keeps an authority that was in the bundle. Without that it is up to us alone.
	if err := l.server.StartCertManager("CAInjectorMerging=false"); err != nil {
		t.Fatal(err)
	}
	l.configure(t, inject)
	return l
}

// certManagerTypes gives the API server cert-manager's types, and waits until it takes objects of them.
func (l *lab) certManagerTypes(t *testing.T) {
	t.Helper()
	crds, err := cluster.CertManagerCRDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		if err := l.apply.Apply(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the API server takes cert-manager's types", 30*time.Second, func() bool {
		_, err := l.server.Kubectl(t.Context(), "get", "certificates.cert-manager.io,issuers.cert-manager.io,clusterissuers.cert-manager.io")
		return err == nil
	})
	if l.apply, err = install.NewApplier(l.server.Config); err != nil { // what it knows of types it asks once
		t.Fatal(err)
	}
}

func TestCertManager(t *testing.T) {
	t.Parallel()
	t.Run("no call fails while it replaces authority and certificate", func(t *testing.T) {
		l := newCertManagerLab(t, map[string]string{certmanager.WantInjectFromSecretAnnotation: system + "/" + shared})
		var sources []certs.Source
		for i, late := range []time.Duration{0, 3 * time.Second, 6 * time.Second} {
			sources = append(sources, l.certManager(t, i%2, l.mount(t, late)))
		}
		replicas := l.start(t, sources...)
		load := l.load(t)
		load.since()
		serves := func(ca string) func() bool {
			return func() bool {
				for i, r := range replicas {
					if err := r.source.Ready(); err != nil {
						t.Errorf("replica %d is not ready: %v", i, err)
					}
					if r.leaf(t).Leaf.CheckSignatureFrom(authorities(t, []byte(ca))[0]) != nil {
						return false
					}
				}
				return true
			}
		}
		first := l.bundle(t)
		l.renew(t, "gpuslice-webhook-authority", "gpuslice-webhook-authority")
		l.renew(t, "gpuslice-webhook", mounted)
		next, err := l.server.Client.CoreV1().Secrets(system).Get(t.Context(), mounted, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(next.Data["ca.crt"], first) {
			t.Fatal("the authority is the same: the test proves nothing")
		}
		took := await(t, "every replica serves a certificate of the new authority", time.Minute, serves(string(next.Data["ca.crt"])))
		t.Logf("every replica had gone over after %s", took.Round(100*time.Millisecond))
		if all := authorities(t, l.bundle(t)); len(all) != 2 || !holds(all, authorities(t, first)[0]) {
			t.Errorf("the bundle has %d authorities", len(all))
		}
		load.unharmed(t, "cert-manager replaced authority and certificate")

		l.empty(t)
		took = await(t, "the cainjector heals the bundle", 30*time.Second, func() bool { return len(l.bundle(t)) > len(first) })
		t.Logf("caBundle was back after %s", took.Round(time.Millisecond))
	})
}

// TestCertManagerSecret shows what the webhook's own Secret is for: injected from the
// Certificate's, the new authority replaces the old at once, and replicas whose files are late are denied.
func TestCertManagerSecret(t *testing.T) {
	t.Parallel()
	t.Run("the authority of the certificate's own secret comes too soon", func(t *testing.T) {
		l := newCertManagerLab(t, map[string]string{"cert-manager.io/inject-ca-from": system + "/gpuslice-webhook"})
		replicas := l.start(t, l.certManager(t, 0, l.mount(t, 3*time.Second)))
		load := l.load(t)
		load.since()
		before := replicas[0].leaf(t)
		l.renew(t, "gpuslice-webhook-authority", "gpuslice-webhook-authority")
		l.renew(t, "gpuslice-webhook", mounted)
		await(t, "the replica has the new certificate", 30*time.Second, func() bool { return !replicas[0].leaf(t).Leaf.Equal(before.Leaf) })
		_, failed := load.since()
		denied := 0
		for text, n := range failed {
			if strings.Contains(text, "certificate signed by unknown authority") {
				denied += n
			}
		}
		t.Logf("%d pods were denied", denied)
		if denied == 0 {
			t.Errorf("none was denied: the load does not see a rotation that goes wrong; failed: %v", failed)
		}
	})
}
