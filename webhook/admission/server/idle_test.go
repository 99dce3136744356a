package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// TestIdleTimeout scales the 90 seconds for which an API server keeps an idle connection to two. Of caller and server, the first to
// end a connection must be the caller: a call on a connection that the server is ending is lost.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	const (
		callers = 2 * time.Second // keep a connection so long
		servers = callers * (idleTimeout / time.Second) / 90
	)
	for name, tt := range map[string]struct {
		server time.Duration // keeps a connection so long
		kept   bool          // until the caller would end it
	}{
		"the server keeps connections longer than its callers": {servers, true},
		"a server that keeps them shorter has ended them":      {callers / 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := serveIdle(t, tt.server)
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			defer client.CloseIdleConnections()
			for range 10 { // on a busy machine a pause may be longer than even the server waits
				call(t, client, at)
				idle := time.Now()
				time.Sleep(callers)
				reused := call(t, client, at)
				if time.Since(idle) > (callers+servers)/2 {
					continue
				}
				if reused != tt.kept {
					t.Errorf("the connection was kept: %v, want %v", reused, tt.kept)
				}
				return
			}
			t.Error("no pause was as short as it was meant to be")
		})
	}
}

// call sends a review, and reports whether it went over a connection that was there.
func call(t *testing.T, client *http.Client, at string) (reused bool) {
	t.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, at, strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", response.Status, err)
	}
	return reused
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
	m := testManager(t)
	stopped := make(chan struct{})
	go func() { defer close(stopped); _ = s.Run(ctx, m, listeners[0], listeners[1]) }()
	t.Cleanup(func() { stop(); <-stopped })
	return "https://" + listeners[0].Addr().String() + PathMutatePods
}
