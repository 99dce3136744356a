package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// stopping is the order of the manifests: 15 s of draining, 15 s for what is in flight.
func stopping() Options {
	return Options{Drain: 15 * time.Second, Shutdown: 15 * time.Second}
}

func TestServerDrain(t *testing.T) {
	t.Run("answers until every caller has left", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := run(t, func(context.Context, review.Request) (review.Answer, *review.Fault) {
				time.Sleep(3 * time.Second)
				return review.Answer{}, nil
			}, stopping())
			if code, closing := r.review(t); code != http.StatusOK || closing {
				t.Errorf("before: answered %d, close %v", code, closing)
			}
			if code, _ := r.probe(t, PathReady); code != http.StatusOK {
				t.Errorf("before: ready is %d", code)
			}

			signal := time.Now()
			r.stop()
			synctest.Wait()
			if code, body := r.probe(t, PathReady); code != http.StatusServiceUnavailable || !strings.Contains(body, "draining") {
				t.Errorf("draining: ready is %d %q", code, body)
			}
			if code, _ := r.probe(t, PathHealth); code != http.StatusOK {
				t.Errorf("draining: health is %d", code)
			}
			for range 4 { // at 0, 3, 6 and 9 s: the first on the connection that was kept, the others on new ones
				if code, closing := r.review(t); code != http.StatusOK || !closing {
					t.Errorf("draining: answered %d, close %v", code, closing)
				}
			}
			time.Sleep(time.Until(signal.Add(14 * time.Second)))
			if code, _ := r.review(t); code != http.StatusOK { // in flight when the drain ends
				t.Errorf("in flight: answered %d", code)
			}
			if err := <-r.stopped; err != nil {
				t.Errorf("serve: %v", err)
			}
			// The review in flight ends at 17 s; TLS then waits up to 5 s for somebody to read its farewell from the pipe.
			if took := time.Since(signal); took < 17*time.Second || took > 23*time.Second {
				t.Errorf("stopped after %s", took)
			}
			if _, err := r.client.Get("https://webhook" + PathMutatePods); err == nil {
				t.Error("answers after it stopped")
			}
		})
	})
}

func TestServerShutdown(t *testing.T) {
	t.Run("a handler that never ends does not hold the process", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stuck := make(chan struct{})
			r := run(t, func(context.Context, review.Request) (review.Answer, *review.Fault) {
				<-stuck
				return review.Answer{}, nil
			}, stopping())
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				_, err := r.client.Post("https://webhook"+PathMutatePods, "application/json", strings.NewReader(sample))
				if err == nil {
					t.Error("answered")
				}
			}()
			synctest.Wait()
			signal := time.Now()
			r.stop()
			if err := <-r.stopped; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("serve: %v", err)
			}
			if took := time.Since(signal); took != 30*time.Second {
				t.Errorf("stopped after %s", took)
			}
			close(stuck)
			<-answered
		})
	})
}

func TestServerConnections(t *testing.T) {
	t.Run("outlive the API server's idle timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := run(t, allowAll, stopping())
			defer r.end(t)
			c, in := r.handshake(t)
			for _, pause := range []time.Duration{91 * time.Second, 0, 91 * time.Second, 149 * time.Second} { // the first before it is used
				time.Sleep(pause)
				fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
					PathMutatePods, len(sample), sample)
				response, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatalf("after %s: %v", pause, err)
				}
				if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
					t.Fatalf("after %s: %s, %v", pause, response.Status, err)
				}
			}
			idle := time.Now()
			if _, err := in.ReadByte(); err == nil || time.Since(idle) != idleTimeout {
				t.Errorf("idle connection ended after %s: %v", time.Since(idle), err)
			}
		})
	})
}

func TestServerHeaders(t *testing.T) {
	for name, tt := range map[string]struct {
		send   func(io.Writer)
		answer string        // the beginning of what comes back; empty: the connection ends
		within time.Duration // of time.Now at the handshake
	}{
		"a client that says nothing": {func(io.Writer) {}, "", idleTimeout},
		"headers that never end": {func(w io.Writer) { _, _ = io.WriteString(w, "POST /mutate-pods HTTP/1.1\r\nHost: x\r\nA: ") },
			"", idleTimeout},
		"headers of 32 KiB": {func(w io.Writer) {
			_, _ = io.WriteString(w, "POST /mutate-pods HTTP/1.1\r\nHost: x\r\nA: "+strings.Repeat("a", 32<<10)+"\r\n\r\n")
		}, "HTTP/1.1 431", 0},
		"a body of one byte a second": {func(w io.Writer) {
			_, _ = io.WriteString(w, "POST /mutate-pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n")
			for range 20 {
				time.Sleep(time.Second)
				if _, err := io.WriteString(w, " "); err != nil {
					return
				}
			}
		}, "HTTP/1.1 400", bodyTimeout},
		"a path that is not served": {func(w io.Writer) { _, _ = io.WriteString(w, "POST /x HTTP/1.1\r\nHost: x\r\n\r\n") }, "HTTP/1.1 404", 0},
		"no HTTP at all":            {func(w io.Writer) { _, _ = io.WriteString(w, "\x00\x01\x02\r\n\r\n") }, "HTTP/1.1 400", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := run(t, allowAll, stopping())
				defer r.end(t)
				c, in := r.handshake(t)
				defer c.Close()
				start := time.Now()
				go tt.send(c)
				line, _ := in.ReadString('\n')
				if !strings.HasPrefix(line, tt.answer) || tt.answer == "" && line != "" {
					t.Errorf("came back: %q, want %q", line, tt.answer)
				}
				if took := time.Since(start); took != tt.within {
					t.Errorf("after %s, want %s", took, tt.within)
				}
			})
		})
	}
}

func TestServerProtocols(t *testing.T) {
	t.Run("old TLS and HTTP/2 are not spoken", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := run(t, allowAll, stopping())
			defer r.end(t)
			for name, tt := range map[string]struct {
				config *tls.Config
				ok     bool
			}{
				"TLS 1.1 is not spoken":           {&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false},
				"TLS 1.2 is spoken":               {&tls.Config{MaxVersion: tls.VersionTLS12}, true},
				"TLS 1.3 is spoken":               {&tls.Config{MinVersion: tls.VersionTLS13}, true},
				"HTTP/2 is offered and not taken": {&tls.Config{NextProtos: []string{"h2", "http/1.1"}}, true},
				"HTTP/2 alone is not spoken":      {&tls.Config{NextProtos: []string{"h2"}}, false},
			} {
				raw, err := r.reviews.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				tt.config.InsecureSkipVerify = true
				c := tls.Client(raw, tt.config)
				if err := c.Handshake(); (err == nil) != tt.ok {
					t.Errorf("%s: %v", name, err)
				}
				if got := c.ConnectionState().NegotiatedProtocol; got == "h2" {
					t.Errorf("%s: negotiated %s", name, got)
				}
				_ = raw.Close()
			}
		})
	})
}

func TestServerReady(t *testing.T) {
	t.Run("readiness names what is missing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var missing = errors.New("not verified yet")
			options := stopping()
			options.Checks = []Check{{"sources", func() error { return nil }}, {"certificate", func() error { return missing }}}
			r := run(t, allowAll, options)
			defer r.end(t)
			if code, body := r.probe(t, PathReady); code != http.StatusServiceUnavailable || body != "certificate: not verified yet\n" {
				t.Errorf("ready is %d %q", code, body)
			}
			if code, _ := r.probe(t, PathHealth); code != http.StatusOK {
				t.Errorf("health is %d: it must depend on nothing", code)
			}
			missing = nil
			if code, _ := r.probe(t, PathReady); code != http.StatusOK {
				t.Errorf("ready is %d", code)
			}
			if code, body := r.probe(t, PathMetrics); code != http.StatusOK || !strings.Contains(body, `gpuslice_build_info{version="test"} 1`) {
				t.Errorf("metrics is %d %q", code, body)
			}
		})
	})
}

func TestServerRun(t *testing.T) {
	t.Run("a listener that fails ends the server", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := run(t, allowAll, stopping())
			_ = r.probes.Close()
			if err := <-r.stopped; err == nil {
				t.Error("served on without probes")
			}
		})
	})
}

// TestServerIdleGrace: what goes out on it while it is closed would be lost.
func TestServerIdleGrace(t *testing.T) {
	for name, tt := range map[string]struct {
		leaves, stops time.Duration // after the signal
	}{
		"it is used late, and told to end":   {29 * time.Second, 29 * time.Second},
		"it is never used":                   {time.Hour, 30 * time.Second},
		"it is used while the server drains": {time.Second, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := stopping()
				options.IdleGrace = 15 * time.Second
				r := run(t, allowAll, options)
				if code, _ := r.review(t); code != http.StatusOK {
					t.Fatalf("answered %d", code)
				}
				signal := time.Now()
				r.stop()
				if tt.leaves < time.Hour {
					time.Sleep(tt.leaves)
					if code, closing := r.review(t); code != http.StatusOK || !closing {
						t.Errorf("answered %d, close %v", code, closing)
					}
				}
				if err := <-r.stopped; err != nil {
					t.Errorf("serve: %v", err)
				}
				// TLS waits up to 5 s for somebody to read its farewell from the pipe, and the server looks ten times a second.
				if took := time.Since(signal); took < tt.stops || took > tt.stops+6*time.Second {
					t.Errorf("stopped after %s, want %s", took, tt.stops)
				}
				r.client.CloseIdleConnections()
			})
		})
	}
}
