package server

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// TestIdleTimeout: callers that call when a connection is about to end. They keep one for a
// second, as the API server does for 90, and the server for the same share longer as it does: no call fails. Where the server
// is the first to end connections, calls are lost on them, which is what makes the other half mean something.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	const (
		callers = 200
		apart   = 2 * time.Second
		longer  = apart * (idleTimeout / time.Second) / 90
	)
	for name, tt := range map[string]struct {
		server, client time.Duration // for which they keep connections
		within         time.Duration // in which a call fails, or none does
		unharmed       bool
	}{
		"the caller ends connections": {longer, apart, 12 * time.Second, true},
		"the server ends connections": {apart, 2 * apart, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := serveIdle(t, tt.server)
			client := &http.Client{Transport: &http.Transport{
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: callers, IdleConnTimeout: tt.client,
			}}
			var calls, failed atomic.Int64
			var running sync.WaitGroup
			end := time.Now().Add(tt.within)
			for range callers {
				running.Go(func() {
					for time.Now().Before(end) && failed.Load() == 0 {
						if calls.Add(1); !called(client, at) {
							failed.Add(1)
						}
						time.Sleep(apart + time.Duration(rand.Int64N(int64(apart)/100)-int64(apart)/200))
					}
				})
			}
			running.Wait()
			if tt.unharmed != (failed.Load() == 0) {
				t.Errorf("of %d calls %d failed", calls.Load(), failed.Load())
			}
		})
	}
}

// called reports whether a review was answered.
func called(client *http.Client, at string) bool {
	response, err := client.Post(at, "application/json", strings.NewReader(sample))
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

// serveIdle serves on a real address until the test ends, keeping idle connections so long, and returns where reviews go.
func serveIdle(t *testing.T, keep time.Duration) string {
	t.Helper()
	certificate := testCertificate(t)
	s := New(Options{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil },
		Endpoints:      map[string]http.Handler{PathMutatePods: serveHandler(t, allowAll)}, Log: logr.Discard(), Shutdown: time.Second,
	})
	s.reviews.IdleTimeout = keep
	var listeners [2]net.Listener
	for k := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[k] = l
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan struct{})
	go func() { defer close(stopped); _ = s.Serve(ctx, listeners[0], listeners[1]) }()
	t.Cleanup(func() { stop(); <-stopped })
	return "https://" + listeners[0].Addr().String() + PathMutatePods
}
