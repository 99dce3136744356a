package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/fake"
)

// TestAnnotationInjectable: the webhook does not import the package of the constant, which adds 979 KB to it.
func TestAnnotationInjectable(t *testing.T) {
	if annotationInjectable != certmanager.AllowsInjectionFromSecretAnnotation {
		t.Errorf("%s, want %s", annotationInjectable, certmanager.AllowsInjectionFromSecretAnnotation)
	}
}

// folder is where somebody else mounts a certificate.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

func (f folder) write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(f.path(name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// mount writes a leaf of an authority as cert-manager would.
func (f folder) mount(t *testing.T, by *signer, leaf *tls.Certificate) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	f.write(t, "tls.crt", pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: leaf.Certificate[0]}))
	f.write(t, "tls.key", pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}))
	f.write(t, "ca.crt", bundle{{certificate: by.certificate}}.encode())
}

func newTestSigner(t *testing.T) *signer {
	t.Helper()
	s, err := newSigner(wallClock(), 365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *signer) leaf(t *testing.T) *tls.Certificate { return s.lasting(t, 24*time.Hour) }

func (s *signer) lasting(t *testing.T, life time.Duration) *tls.Certificate {
	t.Helper()
	leaf, err := s.issue([]string{host}, wallClock(), life)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// inject does what a bundle's owner does.
func inject(t *testing.T, client *fake.Clientset, text []byte) {
	t.Helper()
	live, err := configurations(client).read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := configurations(client).heal(t.Context(), live, text); err != nil {
		t.Fatal(err)
	}
}

func (f folder) options(client *fake.Clientset) MountedOptions {
	return MountedOptions{
		Certificate: f.path("tls.crt"), Key: f.path("tls.key"), Configurations: configurations(client), Propagation: time.Minute,
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
	}
}

func (f folder) source(t *testing.T, o MountedOptions) *Mounted {
	t.Helper()
	m, err := FromFiles(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMounted(t *testing.T) {
	t.Run("files are served once the live bundle trusts them", func(t *testing.T) {
		t.Parallel()
		client, dir, by := configured(), folder(t.TempDir()), newTestSigner(t)
		leaf := by.leaf(t)
		dir.mount(t, by, leaf)
		m := dir.source(t, dir.options(client))
		if m.Ready() == nil {
			t.Error("ready before anybody looked")
		}
		if err := m.check(t.Context(), wallClock()); err == nil || m.Ready() == nil {
			t.Error("ready while the bundle is empty")
		}
		inject(t, client, bundle{{certificate: by.certificate}}.encode())
		mustCheck(t, m)
		if served, err := m.GetCertificate(nil); err != nil || m.Ready() != nil || !served.Leaf.Equal(leaf.Leaf) {
			t.Errorf("not ready, or serves something else: %v, %v", err, m.Ready())
		}
	})
}

func TestFromFiles(t *testing.T) {
	t.Run("missing files are an error", func(t *testing.T) {
		t.Parallel()
		if _, err := FromFiles(folder("/nowhere").options(configured())); err == nil {
			t.Error("files that do not exist were accepted")
		}
	})
}

func TestMountedReload(t *testing.T) {
	t.Run("broken files do not replace the certificate", func(t *testing.T) {
		t.Parallel()
		client, dir, by := configured(), folder(t.TempDir()), newTestSigner(t)
		inject(t, client, bundle{{certificate: by.certificate}}.encode())
		first := by.leaf(t)
		dir.mount(t, by, first)
		m := dir.source(t, dir.options(client))
		mustCheck(t, m)
		for name, spoil := range map[string]func(){
			"a certificate without its key": func() {
				dir.write(t, "tls.crt", pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: by.leaf(t).Certificate[0]}))
			},
			"no certificate": func() { dir.write(t, "tls.crt", []byte("nonsense")) },
			"no file": func() {
				if err := os.Remove(dir.path("tls.key")); err != nil {
					t.Fatal(err)
				}
			},
		} {
			dir.mount(t, by, first)
			before := value(t, m.options.Metrics.unusable)
			spoil()
			if err := m.check(t.Context(), wallClock()); err == nil {
				t.Errorf("%s: nobody says so", name)
			}
			if err := m.Ready(); err != nil || !m.served().Leaf.Equal(first.Leaf) {
				t.Errorf("%s: not ready, or another is served: %v", name, err)
			}
			if got := value(t, m.options.Metrics.unusable); got != before+1 {
				t.Errorf("%s: counted %v", name, got-before)
			}
		}
	})
}

func TestMountedDue(t *testing.T) {
	// about files that arrive before the bundle does.
	t.Run("a new leaf waits for the bundle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, dir, one, two := configured(), folder(t.TempDir()), newTestSigner(t), newTestSigner(t)
			inject(t, client, bundle{{certificate: one.certificate}}.encode())
			first, second := one.leaf(t), two.leaf(t)
			dir.mount(t, one, first)
			m := dir.source(t, dir.options(client))
			mustCheck(t, m)
			serves := func(what string, want *tls.Certificate) {
				t.Helper()
				mustCheck(t, m)
				if !m.served().Leaf.Equal(want.Leaf) || m.Ready() != nil {
					t.Errorf("%s: serves the wrong certificate, or is not ready: %v", what, m.Ready())
				}
			}
			dir.mount(t, two, second)
			serves("nobody trusts it", first)
			inject(t, client, bundle{{certificate: one.certificate}, {certificate: two.certificate}}.encode())
			serves("trusted a moment ago", first)
			time.Sleep(m.options.Propagation)
			serves("trusted for a while", second)

			dir.mount(t, one, first)
			serves("back again, for the moment", second)
			inject(t, client, bundle{{certificate: one.certificate}}.encode())
			serves("the other is not trusted any more", first)
			if got := value(t, m.options.Metrics.rotations.WithLabelValues("another")); got != 2 {
				t.Errorf("counted %v rotations", got)
			}
		})
	})
}

func TestAnnouncement(t *testing.T) {
	// two replicas whose files arrive a minute apart. What is
	// in the Secret is injected at once.
	t.Run("old and new authority are injected together", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, one, two := configured(), newTestSigner(t), newTestSigner(t)
			ctx, stop := context.WithCancel(t.Context())
			var replicas []*Mounted
			var dirs []folder
			done := make(chan error, 2)
			for range 2 {
				dir := folder(t.TempDir())
				dir.mount(t, one, one.lasting(t, 10*time.Minute))
				o := dir.options(client)
				o.Announce = &Announcement{Secret: SharedSecret{client, system, "gpuslice-authority"}, Authority: dir.path("ca.crt")}
				m := dir.source(t, o)
				dirs, replicas = append(dirs, dir), append(replicas, m)
				go func() { done <- m.Start(ctx) }()
			}
			live := func() bundle { return decodeBundle(bundles(t, client, ours)[0], nil) }
			follow := func(what string, last time.Duration) {
				t.Helper()
				for begun := wallClock(); wallClock().Sub(begun) < last; time.Sleep(time.Second) {
					synctest.Wait()
					inject(t, client, secret(t, client).Data[keyBundle])
					for i, m := range replicas {
						if _, err := accepts(bundles(t, client, ours)[0], host, m.served(), wallClock()); err != nil {
							t.Fatalf("%s: replica %d: %v", what, i, err)
						}
					}
				}
			}
			follow("at first", 30*time.Second)
			if secret(t, client).Annotations[annotationInjectable] != "true" || len(live()) != 1 {
				t.Errorf("the Secret cannot be injected, or holds %d authorities", len(live()))
			}
			dirs[0].mount(t, two, two.lasting(t, 48*time.Hour))
			follow("one replica has the new files", time.Minute)
			if !live().contains(one.certificate) || !live().contains(two.certificate) {
				t.Error("old and new are not in the bundle together")
			}
			dirs[1].mount(t, two, two.lasting(t, 48*time.Hour))
			follow("both have", 3*time.Minute)
			for i, m := range replicas {
				if m.served().Leaf.CheckSignatureFrom(two.certificate) != nil || m.Ready() != nil {
					t.Errorf("replica %d serves the old certificate, or is not ready: %v", i, m.Ready())
				}
			}
			if !live().contains(one.certificate) {
				t.Error("the old authority is gone while a certificate of it is valid")
			}
			time.Sleep(10*time.Minute + announceLeeway)
			follow("after its end", 30*time.Second)
			if live().contains(one.certificate) {
				t.Error("the old authority is still announced")
			}
			stop()
			for range replicas {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		})
	})
}

func TestReadAuthorities(t *testing.T) {
	t.Run("an authority that did not sign the leaf is not announced", func(t *testing.T) {
		t.Parallel()
		client, dir, one := configured(), folder(t.TempDir()), newTestSigner(t)
		dir.mount(t, newTestSigner(t), one.leaf(t))
		o := dir.options(client)
		o.Announce = &Announcement{Secret: SharedSecret{client, system, "gpuslice-authority"}, Authority: dir.path("ca.crt")}
		if _, err := FromFiles(o); err == nil {
			t.Error("accepted")
		}
	})
}

func TestSourceChange(t *testing.T) {
	// a roll-out that changes --certs: old and new replicas share the Secret.
	t.Run("nothing is untrusted while --certs changes", func(t *testing.T) {
		t.Parallel()
		client, dir, by := configured(), folder(t.TempDir()), newTestSigner(t)
		self := source(client)
		mustCheck(t, self)
		dir.mount(t, by, by.leaf(t))
		o := dir.options(client)
		o.Announce = &Announcement{Secret: self.options.Secret, Authority: dir.path("ca.crt")}
		mounted := dir.source(t, o)
		_ = mounted.check(t.Context(), wallClock()) // not trusted yet
		inject(t, client, secret(t, client).Data[keyBundle])
		for range 2 {
			mustCheck(t, mounted)
			mustCheck(t, self)
		}
		for name, ready := range map[string]error{"self": self.Ready(), "cert-manager": mounted.Ready()} {
			if ready != nil {
				t.Errorf("%s: %v", name, ready)
			}
		}
	})
}
