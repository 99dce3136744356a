package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gpuslice/gpuslice/guard/status"
)

// handler serves probes and metrics.
func handler(h status.Health, samples prometheus.Collector) http.Handler {
	answer := func(check func() error) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry(h.Recorder, samples), promhttp.HandlerOpts{MaxRequestsInFlight: 2}))
	mux.Handle("GET /healthz", answer(h.Alive))
	mux.Handle("GET /readyz", answer(h.Ready))
	return mux
}

// How many connections there may be: of one address, and in all. Every pod of the
// cluster may reach the port, and a connection takes memory.
const (
	maxPerAddress  = 16
	maxConnections = 256
)

// fairListener closes connections beyond the number that an address may have, and the
// oldest one if there are too many in all: however many addresses connect, the
// kubelet's probes are answered, which take no time.
type fairListener struct {
	net.Listener
	mu   sync.Mutex
	open []*fairConn // oldest first
}

// Accept implements net.Listener.
func (l *fairListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		accepted := &fairConn{Conn: c, listener: l, address: address}
		drop := l.take(accepted)
		if drop != nil {
			_ = drop.Close()
		}
		if drop != accepted {
			return accepted, nil
		}
	}
}

// take counts a connection. It returns the one to close for it; nil: there is room.
func (l *fairListener) take(c *fairConn) (drop *fairConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	same := 0
	for _, open := range l.open {
		if open.address == c.address {
			same++
		}
	}
	if same == maxPerAddress {
		return c
	}
	if len(l.open) == maxConnections {
		drop = l.open[0]
	}
	l.open = append(l.open, c)
	return drop
}

// release no longer counts a connection.
func (l *fairListener) release(c *fairConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(open *fairConn) bool { return open == c })
}

// fairConn is a connection that counts until it is closed.
type fairConn struct {
	net.Conn
	listener *fairListener
	address  string
}

// Close implements net.Conn.
func (c *fairConn) Close() error {
	c.listener.release(c)
	return c.Conn.Close()
}

// newServer returns a server that answers one request a connection, of a few hundred
// bytes, and in seconds.
func newServer(handler http.Handler) *http.Server {
	server := &http.Server{Handler: handler, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 4 << 10}
	server.SetKeepAlivesEnabled(false)
	return server
}

// serve serves until ctx is done.
func serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := newServer(handler)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(&fairListener{Listener: l}); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
