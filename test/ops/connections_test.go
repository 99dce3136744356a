package ops

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/admission/server"
)

// apiServerIdle is how long the API server keeps a connection that nobody uses.
const apiServerIdle = 90 * time.Second

// TestIdleConnections holds thousands of connections open, idle ones and those whose headers never end, and hundreds of bodies
// of which one byte a second comes.
func TestIdleConnections(t *testing.T) {
	t.Run("harm nobody else", func(t *testing.T) {
		l := newLab(t, cluster.Options{}, install.Options{}, "")
		pid, begin := l.Webhook.PID(), time.Now()
		idle := l.idleConnections(scaled(2000, 10_000))
		opened := time.Since(begin)
		slow := l.slowBodies(400)
		others := l.load(4, newCaller(l.Webhook).well)
		eventually(t, time.Minute, "others are answered", func() string {
			if others.count() < 500 && others.failures() == "" {
				return fmt.Sprint(others.count(), " were")
			}
			return ""
		})
		others.end()
		peak := memory(t, pid, "VmHWM")
		t.Logf("%d idle connections, opened in %s, and %d slow bodies: at most %d MiB; %d others, p99 %s", idle, opened.Round(time.Millisecond),
			slow, peak>>20, others.count(), brief(quantile(others.times, 99)))
		figure("connections", "idle ones, slow bodies; most memory", "%d, %d; %d MiB", idle, slow, peak>>20)
		figure("connections", "others meanwhile; p50, p99", "%d; %s, %s", others.count(),
			brief(quantile(others.times, 50)), brief(quantile(others.times, 99)))
		if text := others.failures(); text != "" {
			t.Errorf("others:\n%s", text)
		}
		if peak > memoryLimit {
			t.Errorf("it took %d MiB", peak>>20)
		}
		l.sameProcess(pid)
	})
}

// idleConnections opens n connections, and keeps them until the test ends: over half of them it sends a request, over the others
// the beginning of one. It returns how many there are: the machine may allow fewer.
func (l *lab) idleConnections(n int) int {
	var mu sync.Mutex
	open := 0
	jobs := make(chan bool)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for slow := range jobs {
				c, err := l.connect()
				if err != nil {
					continue
				}
				if slow {
					_, err = io.WriteString(c, "POST "+server.PathMutatePods+" HTTP/1.1\r\nA: "+strings.Repeat("a", 8000))
				} else if _, err = io.WriteString(c, "GET /nothing HTTP/1.1\r\nHost: webhook\r\n\r\n"); err == nil {
					_, err = c.Read(make([]byte, 1024))
				}
				if err == nil {
					mu.Lock()
					open++
					mu.Unlock()
				}
			}
		})
	}
	for k := range n {
		jobs <- k%2 == 0
	}
	close(jobs)
	workers.Wait()
	if open < n/2 {
		l.t.Fatalf("of %d connections %d were opened", n, open)
	}
	return open
}

// slowBodies begins n reviews, and sends a byte of each a second until the test ends or the replica has had enough.
func (l *lab) slowBodies(n int) int {
	begun := 0
	for range n {
		c, err := l.connect()
		if err != nil {
			continue
		}
		_, err = fmt.Fprintf(c,
			"POST %s HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n", server.PathMutatePods)
		if err != nil {
			continue
		}
		begun++
		go func() {
			for l.t.Context().Err() == nil {
				if _, err := io.WriteString(c, " "); err != nil {
					return
				}
				pause(l.t.Context(), time.Second)
			}
		}()
	}
	return begun
}

// connect opens a connection that ends with the test.
func (l *lab) connect() (net.Conn, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	ctx, cancel := context.WithTimeout(l.t.Context(), 10*time.Second)
	defer cancel()
	c, err := dialer.DialContext(ctx, "tcp", l.Webhook.Reviews)
	if err == nil {
		l.t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// TestSpacedCalls keeps connections as the API server does, 90 seconds, and calls when they are
// about to end. In CI the same is tried in the webhook's own package, with times that are scaled.
func TestSpacedCalls(t *testing.T) {
	t.Run("around the idle timeout never fail", func(t *testing.T) {
		if !long() {
			t.Skip("takes ten minutes of real idle times: set GPUSLICE_TEST=apiserver,long to run it (make bench-ops)")
		}
		l := newLab(t, cluster.Options{}, install.Options{}, "")
		const callers = 200
		var running sync.WaitGroup
		var mu sync.Mutex
		failed, asked := map[string]int{}, 0
		c := newCaller(l.Webhook)
		end := time.Now().Add(10 * time.Minute)
		for k := range callers {
			running.Go(func() {
				for time.Now().Before(end) {
					err := c.well(t.Context())
					mu.Lock()
					if asked++; err != nil {
						failed[err.Error()]++
					}
					mu.Unlock()
					pause(t.Context(), 85*time.Second+time.Duration(k)*10*time.Second/callers)
				}
			})
		}
		running.Wait()
		figure("idle connections", fmt.Sprintf("calls 85 to 95 s apart by %d clients, failed", callers), "%d, %d", asked, len(failed))
		if len(failed) > 0 {
			t.Errorf("of %d calls failed: %v", asked, failed)
		}
	})
}
