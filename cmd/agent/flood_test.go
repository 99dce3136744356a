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
)

// TestFloodOfConnections opens connections from one address, as a pod can, and
// sends nothing.
func TestFloodOfConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := health{filledRecorder(), func() bool { return true }, time.Now()}
	go func() { _ = serve(t.Context(), l, h.handler()) }()
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
