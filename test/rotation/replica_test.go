package rotation

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admission "k8s.io/api/admission/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gpuslice/gpuslice/certs"
	"github.com/gpuslice/gpuslice/webhook/admission/server"
)

// replica serves with the certificate of its source.
type replica struct {
	source certs.Source
	at     string
}

// start runs the replicas until the test ends, each with its source, and makes them the endpoints of the Service once they
// are ready.
func (l *lab) start(t *testing.T, sources ...certs.Source) []replica {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	var replicas []replica
	var addresses []string
	for _, source := range sources {
		listener, probes := listen(t), listen(t)
		srv := server.New(server.Options{
			GetCertificate: source.GetCertificate, Log: logr.Discard(), Shutdown: time.Second,
			Endpoints: map[string]http.Handler{server.PathMutatePods: http.HandlerFunc(allow)},
		})
		running.Go(func() {
			if err := source.Start(ctx); err != nil {
				t.Errorf("source: %v", err)
			}
		})
		m, err := manager.New(&rest.Config{}, manager.Options{
			Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { _ = srv.Run(ctx, m, listener, probes) })
		replicas = append(replicas, replica{source, listener.Addr().String()})
		addresses = append(addresses, listener.Addr().String())
	}
	for _, r := range replicas {
		await(t, "a replica is ready", 30*time.Second, func() bool { return r.source.Ready() == nil })
	}
	if err := l.server.SetEndpoints(t.Context(), system, service, addresses...); err != nil {
		t.Fatal(err)
	}
	return replicas
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// allow allows everything, once for each connection.
func allow(w http.ResponseWriter, r *http.Request) {
	var review admission.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// leaf is the certificate that the replica serves.
func (r replica) leaf(t *testing.T) *tls.Certificate {
	t.Helper()
	leaf, err := r.source.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}
