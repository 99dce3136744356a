package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// stuckAfter is how long the agent may be without a sample before the kubelet
// starts it again: the driver answers within seconds or is given up.
const stuckAfter = time.Minute

// health is what the probes ask for.
type health struct {
	recorder *recorder
	synced   func() bool
	began    time.Time
}

// alive returns why the agent should be started again, or nil.
func (h health) alive() error {
	at, _ := h.recorder.sampledAt()
	if at.IsZero() {
		at = h.began
	}
	if since := time.Since(at); since > stuckAfter {
		return fmt.Errorf("no device was sampled for %s", since.Round(time.Second))
	}
	return nil
}

// ready returns why the agent does not enforce, or nil.
func (h health) ready() error {
	at, readable := h.recorder.sampledAt()
	switch {
	case !h.synced():
		return errors.New("the pods of the node are not known yet")
	case at.IsZero():
		return errors.New("the devices were not sampled yet")
	case !readable:
		return errors.New("the devices cannot be read")
	}
	return h.alive()
}

// handler serves probes and metrics.
func (h health) handler() http.Handler {
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
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry(h.recorder), promhttp.HandlerOpts{MaxRequestsInFlight: 2}))
	mux.Handle("GET /healthz", answer(h.alive))
	mux.Handle("GET /readyz", answer(h.ready))
	return mux
}

// maxPerAddress is how many connections one address may have: a pod that opens
// more takes neither memory nor the kubelet's probes from the agent.
const maxPerAddress = 16

// fairListener closes connections beyond those that an address may have.
type fairListener struct {
	net.Listener
	mu   sync.Mutex
	open map[string]int
}

// Accept implements net.Listener.
func (l *fairListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		if l.take(address) {
			return &fairConn{Conn: c, release: sync.OnceFunc(func() { l.release(address) })}, nil
		}
		_ = c.Close()
	}
}

func (l *fairListener) take(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[address] == maxPerAddress {
		return false
	}
	l.open[address]++
	return true
}

func (l *fairListener) release(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}

// fairConn is a connection that counts until it is closed.
type fairConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *fairConn) Close() error {
	c.release()
	return c.Conn.Close()
}

// serve serves until ctx ends.
func serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(&fairListener{Listener: l, open: map[string]int{}}); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
