package certs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
)

// TestMain keeps quiet what client-go says of API servers that tests take away.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// value reads a counter or gauge.
func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}

func TestLoop(t *testing.T) {
	// runs Start under the clock of a bubble: what somebody broke is healed as soon as it is seen, and without
	// the watch at the next check; a check that failed is repeated soon.
	t.Run("checks go on", func(t *testing.T) {
		for name, deaf := range map[string]bool{"with the watch": false, "without": true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { checksGoOn(t, deaf) })
			})
		}
	})
}

func checksGoOn(t *testing.T, deaf bool) {
	client := configured()
	s := source(client)
	var failing atomic.Bool
	failing.Store(true)
	client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return failing.Load(), nil, errors.New("the API server is away")
	})
	within := minPause
	if deaf {
		within = checkPeriod
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("no right to list")
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Start(ctx) }()
	synctest.Wait()
	if err := s.Ready(); err == nil || !strings.Contains(err.Error(), "the API server is away") {
		t.Errorf("ready: %v", err)
	}
	failing.Store(false)
	time.Sleep(retryPeriod + minPause)
	synctest.Wait()
	if err := s.Ready(); err != nil {
		t.Errorf("not ready after the API server came back: %v", err)
	}
	time.Sleep(time.Minute)
	good := bundles(t, client, ours)[0]
	m, _ := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, ours, metav1.GetOptions{})
	m.Webhooks[0].ClientConfig.CABundle = nil
	_, _ = client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(ctx, m, metav1.UpdateOptions{})
	time.Sleep(within)
	synctest.Wait()
	if !bytes.Equal(bundles(t, client, ours)[0], good) {
		t.Errorf("the bundle is not healed after %s", within)
	}
	if got := value(t, s.options.Metrics.mismatches); got != 1 {
		t.Errorf("%v mismatches were counted", got)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestServingRecord(t *testing.T) {
	// about all replicas at once: not ready, none would be called,
	// and pods would pass as they are.
	t.Run("an API server that does not answer makes no certificate bad", func(t *testing.T) {
		t.Parallel()
		for _, resource := range []string{"secrets", "mutatingwebhookconfigurations"} {
			t.Run(resource, func(t *testing.T) {
				t.Parallel()
				client := configured()
				s := source(client)
				fail := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("too busy") }
				mustCheck(t, s)
				client.PrependReactor("get", resource, fail)
				if err := s.check(t.Context(), wallClock()); err == nil {
					t.Fatal("the check passed")
				}
				if err := s.Ready(); err != nil {
					t.Errorf("not ready: %v", err)
				}
				fresh := source(client)
				if err := fresh.check(t.Context(), wallClock()); err == nil || fresh.Ready() == nil {
					t.Error("a source that never verified its certificate is ready")
				}
			})
		}
	})
}

func TestServingReady(t *testing.T) {
	// about missing rights.
	t.Run("a bundle that cannot be healed makes no replica ready", func(t *testing.T) {
		t.Parallel()
		client := configured()
		s := source(client)
		mustCheck(t, s)
		client.PrependReactor("patch", "mutatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("no right to patch")
		})
		m, _ := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), ours, metav1.GetOptions{})
		m.Webhooks[1].ClientConfig.CABundle = nil
		if _, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := s.check(t.Context(), wallClock()); err == nil || s.Ready() == nil ||
			!strings.Contains(s.Ready().Error(), "templates.gpuslice.dev") {
			t.Errorf("ready: %v", s.Ready())
		}
	})
}

func TestMetrics(t *testing.T) {
	t.Run("the expiry of certificate and authority is exported", func(t *testing.T) {
		t.Parallel()
		s := source(configured())
		mustCheck(t, s)
		if got := value(t, s.options.Metrics.leaf); got != float64(s.served().Leaf.NotAfter.Unix()) {
			t.Errorf("leaf: %v", got)
		}
		if got := value(t, s.options.Metrics.authority); got != float64(s.lastRead.signer.certificate.NotAfter.Unix()) {
			t.Errorf("authority: %v", got)
		}
	})
}
