package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/gpuslice/gpuslice/cmd/component"
)

// unreachable is a kubeconfig of an API server that is not there.
const unreachable = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
`

func TestRun(t *testing.T) {
	// runs the real wiring.
	t.Run("without an API server the process is healthy, not ready, and stops in order", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		out, in := io.Pipe()
		code := make(chan int, 1)
		go func() {
			args := []string{"--kubeconfig", kubeconfigFile(t), "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", "--drain=0s"}
			code <- execute(ctx, args, io.Discard, in, run)
			_ = in.Close()
		}()
		probes := listening(t, out)
		for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable, "/metrics": http.StatusOK,
			"/debug/pprof/": http.StatusNotFound} {
			response, err := http.Get("http://" + probes + path)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("%s answers %d %s", path, response.StatusCode, text)
			}
			if path == "/readyz" && !(strings.Contains(string(text), "cluster: ") && strings.Contains(string(text), "certificate: ")) {
				t.Errorf("readiness does not name what is missing: %s", text)
			}
		}
		stop()
		if got := <-code; got != component.ExitOK {
			t.Errorf("exit %d", got)
		}
	})
}

// TestPanicOfAHandler: client-go ends the process by default.
func TestPanicOfAHandler(t *testing.T) {
	defer utilruntime.HandleCrash()
	panic("odd object")
}

func TestRunFails(t *testing.T) {
	for name, args := range map[string][]string{
		"no cluster and no kubeconfig":   nil,
		"a kubeconfig that is not there": {"--kubeconfig=/nowhere"},
		"certificates that are not there": {"--kubeconfig", kubeconfigFile(t), "--certs=files",
			"--certs-file=/nowhere", "--certs-key-file=/nowhere"},
		"an address that is not of the machine": {"--kubeconfig", kubeconfigFile(t), "--listen=192.0.2.1:1", "--metrics-listen=127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			if code := execute(t.Context(), args, io.Discard, io.Discard, run); code != component.ExitFailed {
				t.Errorf("exit %d", code)
			}
		})
	}
}

func kubeconfigFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(unreachable), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// listening reads the log until it says where probes are answered, and goes on draining it.
func listening(t *testing.T, log io.Reader) string {
	t.Helper()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Msg, Probes string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("log line %q: %v", lines.Text(), err)
		}
		if line.Msg == "listening" {
			go func() {
				for lines.Scan() {
				}
			}()
			return line.Probes
		}
	}
	t.Fatal("the log ends before the server listens")
	return ""
}
