package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/guard/status"
)

// filledHandler serves a value for every metric.
func filledHandler() http.Handler {
	r, samples := filledRecorder()
	return handler(status.Health{Recorder: r, Synced: func() bool { return true }, Began: time.Now()}, samples)
}

// TestFloodOfConnections opens connections from one address, as a pod can, and
// sends nothing.
func TestFloodOfConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = serve(t.Context(), l, filledHandler()) }()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	open := 0
	for range 4 * maxPerAddress {
		c, err := from.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if open == maxPerAddress { // what comes now is closed soon
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
		}
		var late net.Error
		if _, err := bufio.NewReader(c).ReadByte(); errors.As(err, &late) && late.Timeout() {
			open++
		}
	}
	if open != maxPerAddress {
		t.Errorf("%d connections of one address are open, want %d", open, maxPerAddress)
	}
	answer, err := http.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("another address gets %d %s (%v)", answer.StatusCode, text, err)
	}
}

// TestFloodFromManyAddresses opens connections from more addresses than a node has
// pods, and sends as much of a request on each as is read.
func TestFloodFromManyAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fair := &fairListener{Listener: l}
	server := newServer(filledHandler())
	go func() { _ = server.Serve(fair) }()
	defer server.Close()
	var first net.Conn
	for i := range 2 * maxConnections {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%200))}}
		c, err := from.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if first == nil {
			first = c
		}
		_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 3<<10)) // the rest never comes
	}
	_ = first.SetReadDeadline(time.Now().Add(2 * time.Second)) // less than a request may take
	var late net.Error
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.As(err, &late) && late.Timeout() {
		t.Errorf("the first connection is open: %v", err)
	}
	fair.mu.Lock()
	if open := len(fair.open); open > maxConnections {
		t.Errorf("%d connections are open, want at most %d", open, maxConnections)
	}
	fair.mu.Unlock()
	answer, err := http.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !answer.Close {
		t.Errorf("a probe gets %d, and keeps the connection: %v", answer.StatusCode, !answer.Close)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X", strings.Repeat("x", 16<<10))
	large, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer large.Body.Close()
	if large.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 16 KiB gets %d", large.StatusCode)
	}
}

// TestEventAfterManyWarnings: client-go writes 25 Events about an object in a row
// and then one in five minutes. A tenant can bring many warnings about.
func TestEventAfterManyWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		written := newEventWriter(t.Context(), client, nodeName)
		p := node.Pod{Namespace: "team-a", Name: "train", UID: "u-1"}
		for range 40 {
			_, reason, message := eventOf(guard.Event{Kind: guard.NearLimit, Container: "trainer"})
			written.Write(referenceTo(p), corev1.EventTypeWarning, reason, message)
			synctest.Wait()
			time.Sleep(time.Second)
		}
		eventType, reason, message := eventOf(guard.Event{Kind: guard.TerminationResult, Outcome: &guard.Outcome{Result: guard.Terminated}})
		written.Write(referenceTo(p), eventType, reason, message)
		synctest.Wait()
		written.Close()
		list, err := client.CoreV1().Events("team-a").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var reasons []string
		for _, e := range list.Items {
			reasons = append(reasons, e.Reason)
		}
		if !strings.Contains(strings.Join(reasons, " "), reasonTerminated) {
			t.Errorf("the Events are %q", reasons)
		}
	})
}
