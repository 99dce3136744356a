package server

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// pipes is a listener in memory, so that a whole server runs under the clock of a synctest bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects, or fails once the listener is closed.
func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// running is a server under test and its clients.
type running struct {
	server          *Server
	reviews, probes *pipes
	client          *http.Client // keeps connections, as the API server does
	stop            context.CancelFunc
	stopped         chan error
}

// run serves handler in a synctest bubble.
func run(t *testing.T, handler review.HandlerFunc, options Options) *running {
	t.Helper()
	certificate := testCertificate(t)
	options.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
	options.Endpoints = map[string]http.Handler{PathMutatePods: serveHandler(t, handler)}
	options.Metrics, options.Log = metrics.New("test"), logr.Discard()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{server: New(options), reviews: newPipes(), probes: newPipes(), stop: stop, stopped: make(chan error, 1)}
	r.client = &http.Client{Transport: &http.Transport{
		DialContext: r.reviews.dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, IdleConnTimeout: time.Hour,
	}}
	m := testManager(t)
	go func() { r.stopped <- r.server.Run(ctx, m, r.reviews, r.probes) }()
	synctest.Wait()
	return r
}

// end stops the server and waits for it, so that the bubble has no goroutine left.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.client.CloseIdleConnections()
	r.stop()
	if err := <-r.stopped; err != nil {
		t.Errorf("serve: %v", err)
	}
	r.client.CloseIdleConnections()
}

// review posts the sample and says how it was answered.
func (r *running) review(t *testing.T) (code int, closing bool) {
	t.Helper()
	response, err := r.client.Post("https://webhook"+PathMutatePods, "application/json", strings.NewReader(sample))
	if err != nil {
		t.Errorf("review: %v", err)
		return 0, false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Close
}

// probe asks the plain port.
func (r *running) probe(t *testing.T, path string) (code int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: r.probes.dial, DisableKeepAlives: true}}
	response, err := client.Get("http://webhook" + path)
	if err != nil {
		t.Errorf("probe %s: %v", path, err)
		return 0, ""
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// handshake opens a connection of its own, for what a well-behaved client never sends.
func (r *running) handshake(t *testing.T) (*tls.Conn, *bufio.Reader) {
	t.Helper()
	raw, err := r.reviews.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// testManager is a manager of the cluster that is not there, as the command makes it.
func testManager(t *testing.T) manager.Manager {
	t.Helper()
	m, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"}, manager.Options{
		Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func testCertificate(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"webhook"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
