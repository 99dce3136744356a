package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"
)

// mount writes a leaf as somebody else would, and returns the paths of certificate and key.
func mount(t *testing.T, dir string, leaf *tls.Certificate) (certificate, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for path, block := range map[string]*pem.Block{
		certificate: {Type: pemCertificate, Bytes: leaf.Certificate[0]}, key: {Type: pemKey, Bytes: der},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

func issued(t *testing.T, a *authority, names ...string) *tls.Certificate {
	t.Helper()
	leaf, err := a.issue(names, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestMountedFilesAreServedOnceTheLiveBundleTrustsThem(t *testing.T) {
	t.Parallel()
	a, err := newAuthority(time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	client := cluster()
	configurations := Configurations{Client: client, Mutating: []string{ours}}
	leaf := issued(t, a, host)
	certificate, key := mount(t, t.TempDir(), leaf)
	f, err := FromFiles(certificate, key, configurations)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.check(t.Context()); err == nil || f.Ready() == nil {
		t.Error("ready while the bundle is empty")
	}
	if _, _, err := configurations.heal(t.Context(), a.encodeBundle()); err != nil {
		t.Fatal(err)
	}
	if err := f.check(t.Context()); err != nil || f.Ready() != nil {
		t.Errorf("not ready: %v, %v", err, f.Ready())
	}
	if served, err := f.GetCertificate(nil); err != nil || !served.Leaf.Equal(leaf.Leaf) || !f.Expiry().Equal(leaf.Leaf.NotAfter) {
		t.Errorf("serves something else: %v", err)
	}
}

func TestFilesThatAreNoPairAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := FromFiles("/nowhere/tls.crt", "/nowhere/tls.key", Configurations{Client: fake.NewClientset()}); err == nil {
		t.Error("files that do not exist were accepted")
	}
}

func TestFilesThatChangeAreServed(t *testing.T) {
	t.Parallel()
	a, err := newAuthority(time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key := mount(t, dir, issued(t, a, host))
	f, err := FromFiles(certificate, key, Configurations{Client: fake.NewClientset()})
	if err != nil {
		t.Fatal(err)
	}
	f.watcher.WithWatchInterval(20 * time.Millisecond)
	changed := make(chan struct{}, 8)
	f.watcher.RegisterCallback(func(tls.Certificate) { changed <- struct{}{} })
	<-changed // what is served already
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Start(ctx) }()
	next := issued(t, a, host)
	mount(t, dir, next)
	for {
		<-changed
		if served, _ := f.GetCertificate(nil); served.Leaf.Equal(next.Leaf) {
			break
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
