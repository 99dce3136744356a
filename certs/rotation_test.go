package certs

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// short are lifetimes whose whole course a test can follow.
func short() Lifetimes {
	return Lifetimes{Authority: 2 * time.Hour, Leaf: 15 * time.Minute, Propagation: time.Minute}
}

func TestSelfSignedRenew(t *testing.T) {
	t.Run("a leaf is renewed while a third of its life is left", func(t *testing.T) {
		t.Parallel()
		s, start := source(configured()), wallClock()
		mustCheck(t, s)
		first, life := s.served(), s.options.Lifetimes.Leaf
		if err := s.check(t.Context(), start.Add(life*3/5)); err != nil {
			t.Fatal(err)
		}
		if s.served() != first {
			t.Error("renewed early")
		}
		if err := s.check(t.Context(), start.Add(life*4/5)); err != nil {
			t.Fatal(err)
		}
		if second := s.served(); second == first || !second.Leaf.NotAfter.After(first.Leaf.NotAfter) {
			t.Errorf("not renewed: expires %s", second.Leaf.NotAfter)
		}
	})
}

// entry is a live configuration with one entry that trusts b.
func entry(b bundle) []configuration {
	return []configuration{{hooks: []hook{{name: "a", host: host, bundle: b.encode()}}}}
}

func TestAuthorityStep(t *testing.T) {
	t.Parallel()
	l, start := short(), wallClock()
	a, err := newAuthority(start, l, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, before := a.signer, a.bundle
	at := start
	step := func(what string, later time.Duration, live []configuration, asked, want bool) {
		t.Helper()
		at = at.Add(later)
		next, changed, err := a.step(at, l, live, asked)
		if err != nil || changed != want {
			t.Fatalf("%s: changed %v, want %v, %v", what, changed, want, err)
		}
		a = next
	}
	step("nothing is due", time.Hour, entry(a.bundle), false, false)
	step("asked: a successor is made", 0, entry(a.bundle), true, true)
	if a.signer != first || a.next == nil || !a.bundle.contains(a.next.certificate) || !a.bundle.contains(first.certificate) {
		t.Fatal("the successor is not beside the one that signs")
	}
	second := a.next
	step("some entry has the old bundle", l.Propagation, entry(before), false, false)
	step("it stands everywhere", 0, entry(a.bundle), false, true)
	step("not long enough", l.Propagation/2, entry(a.bundle), false, false)
	step("somebody put the old bundle back", 0, entry(before), false, true)
	step("it stands everywhere again", 0, entry(a.bundle), false, true)
	step("not long enough, asked once more", l.Propagation-time.Second, entry(a.bundle), true, false)
	step("long enough: it signs", time.Second, entry(a.bundle), false, true)
	if a.signer != second || a.next != nil || !a.bundle.contains(first.certificate) {
		t.Fatal("the successor does not sign, or its predecessor is forgotten at once")
	}
	step("leaves of the first may be served", l.Leaf, entry(a.bundle), false, false)
	step("none is any more", l.margin(), entry(a.bundle), false, true)
	if a.bundle.contains(first.certificate) || !a.bundle.contains(second.certificate) {
		t.Error("the first is still trusted")
	}
	step("the second nears its end", l.Authority-l.ahead()-l.Leaf, entry(a.bundle), false, true)
	if a.next == nil {
		t.Error("no third")
	}
}

func TestDecodeAuthority(t *testing.T) {
	t.Run("an authority is read as it was written", func(t *testing.T) {
		t.Parallel()
		l, start := short(), wallClock()
		older, err := newAuthority(start, l, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := newAuthority(start, l, older.bundle)
		if err != nil {
			t.Fatal(err)
		}
		if a, _, err = a.step(start, l, nil, true); err != nil {
			t.Fatal(err)
		}
		if a, _, err = a.step(start.Add(time.Minute), l, entry(a.bundle), false); err != nil {
			t.Fatal(err)
		}
		data, err := a.encode()
		if err != nil {
			t.Fatal(err)
		}
		read, err := decodeAuthority(data, start)
		if err != nil {
			t.Fatal(err)
		}
		again, err := read.encode()
		if err != nil {
			t.Fatal(err)
		}
		for key := range data {
			if !bytes.Equal(data[key], again[key]) {
				t.Errorf("%s: %s became %s", key, data[key], again[key])
			}
		}
		if len(read.bundle) != 3 || read.next == nil || !read.since.Equal(a.since) {
			t.Errorf("read %d authorities, since %s", len(read.bundle), read.since)
		}
	})
}

// apiServer is one that learns of bundles late. Its calls fail where the leaf of a replica does not verify.
type apiServer struct {
	lag  time.Duration
	seen []struct {
		at     time.Time
		bundle []byte
	}
	failed []string
}

func (a *apiServer) learn(bundle []byte) {
	a.seen = append(a.seen, struct {
		at     time.Time
		bundle []byte
	}{wallClock(), bundle})
}

// call calls each replica with the bundle that stood lag ago.
func (a *apiServer) call(replicas []*SelfSigned) {
	var known []byte
	for _, s := range a.seen {
		if wallClock().Sub(s.at) >= a.lag {
			known = s.bundle
		}
	}
	for i, r := range replicas {
		if err := r.Ready(); err != nil {
			a.failed = append(a.failed, fmt.Sprintf("replica %d is not ready: %v", i, err))
		}
		if _, err := accepts(known, host, r.served(), wallClock()); err != nil {
			a.failed = append(a.failed, fmt.Sprintf("%s: replica %d: %v", wallClock(), i, err))
		}
	}
}

func TestRotation(t *testing.T) {
	// follows three replicas over the lives of two authorities, beside API servers
	// that learn of a bundle at once and late.
	t.Run("no call fails while authorities come and go", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := configured()
			ctx, stop := context.WithCancel(t.Context())
			replicas := []*SelfSigned{source(client), source(client), source(client)}
			done := make(chan error, len(replicas))
			for _, r := range replicas {
				r.options.Lifetimes = short()
				go func() { done <- r.Start(ctx) }()
			}
			servers := []*apiServer{{}, {lag: 30 * time.Second}}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			first := decodeBundle(bundles(t, client, ours)[0], nil)[0].certificate
			for _, s := range servers {
				s.learn(bundles(t, client, ours)[0])
			}
			authorities := map[string]bool{}
			time.Sleep(time.Minute)
			for begun := wallClock(); wallClock().Sub(begun) < 2*time.Hour; time.Sleep(15 * time.Second) {
				synctest.Wait()
				for _, s := range servers {
					s.learn(bundles(t, client, ours)[0])
					s.call(replicas)
					if len(s.failed) > 0 {
						t.Fatalf("with a lag of %s: %q", s.lag, s.failed)
					}
					s.seen = s.seen[max(0, len(s.seen)-10):]
				}
				authorities[string(replicas[0].served().Leaf.AuthorityKeyId)] = true
			}
			if len(authorities) < 2 || decodeBundle(bundles(t, client, ours)[0], nil).contains(first) {
				t.Errorf("%d authorities signed, and the bundle has %d", len(authorities), len(decodeBundle(bundles(t, client, ours)[0], nil)))
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

func TestSuspended(t *testing.T) {
	// about a process or machine that was suspended. Meanwhile everything
	// it knew was replaced.
	t.Run("a replica that was suspended is not ready until it has checked", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := configured()
			asleep := source(client)
			mustCheck(t, asleep)
			if err := client.CoreV1().Secrets(system).Delete(t.Context(), "gpuslice-authority", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			mustCheck(t, source(client)) // has never heard of the first authority
			time.Sleep(staleAfter - time.Second)
			if err := asleep.Ready(); err != nil {
				t.Errorf("not ready before anything is stale: %v", err)
			}
			time.Sleep(time.Hour)
			if _, err := accepts(bundles(t, client, ours)[0], host, asleep.served(), wallClock()); err == nil {
				t.Fatal("its leaf is still accepted: the test proves nothing")
			}
			if asleep.Ready() == nil {
				t.Error("ready with a leaf that nobody accepts")
			}
			mustCheck(t, asleep)
			if err := asleep.Ready(); err != nil {
				t.Errorf("not ready after it has looked: %v", err)
			}
			time.Sleep(8 * 24 * time.Hour)
			if asleep.Ready() == nil {
				t.Error("ready with an expired leaf")
			}
		})
	})
}

func TestAnnotationRotate(t *testing.T) {
	t.Run("the annotation begins a rotation", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := configured()
			s := source(client)
			mustCheck(t, s)
			first, leaf := s.lastRead.signer.certificate, s.served()
			asked := secret(t, client)
			asked.Annotations = map[string]string{AnnotationRotate: "now"}
			if _, err := client.CoreV1().Secrets(system).Update(t.Context(), asked, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			mustCheck(t, s)
			if found := secret(t, client); len(found.Annotations) > 0 || len(found.Data[keyNext]) == 0 {
				t.Errorf("the wish stands, or is not done: %v", found.Annotations)
			}
			mustCheck(t, s)
			time.Sleep(s.options.Lifetimes.Propagation)
			if s.served() != leaf {
				t.Error("the leaf was replaced too early")
			}
			mustCheck(t, s)
			if s.lastRead.signer.certificate.Equal(first) || s.served() == leaf || s.Ready() != nil {
				t.Errorf("not rotated: %v", s.Ready())
			}
			if got := value(t, s.options.Metrics.rotations.WithLabelValues("another")); got != 1 {
				t.Errorf("counted %v rotations", got)
			}
		})
	})
}

func TestExpiredAuthority(t *testing.T) {
	// about a cluster that was off for a year.
	t.Run("an authority that expired between two checks is replaced", func(t *testing.T) {
		t.Parallel()
		client := configured()
		s := source(client)
		mustCheck(t, s)
		old := s.lastRead.signer.certificate
		for name, who := range map[string]*SelfSigned{"the same replica": s, "a new one": source(client)} {
			if err := who.check(t.Context(), old.NotAfter.Add(time.Hour)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if decodeBundle(bundles(t, client, ours)[0], nil).contains(old) {
			t.Error("an expired authority is still in the bundle")
		}
	})
}
