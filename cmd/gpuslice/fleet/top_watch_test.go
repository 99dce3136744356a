package fleet_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
	"github.com/gpuslice/gpuslice/test/commandline"
)

// TestTopWatch: top -w reads again, and an interrupt is no error.
func TestTopWatch(t *testing.T) {
	server := commandline.Serve(t, commandline.World{Folders: []string{"../testdata/live"}, Nodes: "../testdata/cluster/nodes.yaml"})
	client, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("team-notebooks")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, in := io.Pipe()
	code := make(chan int)
	go func() {
		s := commandline.StreamsTo(&bytes.Buffer{}, &bytes.Buffer{})
		s.Out = in
		ended := program.Run(ctx, []string{"gpuslice", "top", "-n", "team-notebooks", "-w", "--interval", "1s", "--no-headers"}, s)
		in.Close()
		code <- ended
	}()
	lines := bufio.NewScanner(out)
	want := func(note string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasSuffix(lines.Text(), note) {
				return
			}
		}
		t.Fatalf("the output ended before %q: %v", note, lines.Err())
	}
	want("its guard serves no metrics: set guard.metricsPort in the policy, for new pods")
	pod, err := pods.Get(t.Context(), "notebook", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(pod.Object, "Pending", "status", "phase"); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want("the pod is Pending")
	interrupt()
	for lines.Scan() { // what was being printed
	}
	if got := <-code; got != 0 {
		t.Errorf("exit %d after an interrupt", got)
	}
}

// TestTopWatchGoesOn: a round of top -w that the API server does not answer is named on standard error, and the next one is shown.
func TestTopWatchGoesOn(t *testing.T) {
	w := commandline.World{Folders: []string{"../testdata/live"}, Nodes: "../testdata/cluster/nodes.yaml"}
	var lists atomic.Int64
	w.Fails = func(resource string) bool { return resource == "pods" && lists.Add(1) == 2 }
	commandline.Serve(t, w)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, in := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int)
	go func() {
		s := commandline.StreamsTo(&bytes.Buffer{}, &errs)
		s.Out = in
		ended := program.Run(ctx, []string{"gpuslice", "top", "-n", "team-notebooks", "-w", "--interval", "1s"}, s)
		in.Close()
		code <- ended
	}()
	lines, rounds := bufio.NewScanner(out), 0
	for rounds < 2 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "POD ") {
			rounds++
		}
	}
	interrupt()
	for lines.Scan() { // what was being printed
	}
	if got := <-code; got != 0 || rounds != 2 || !strings.Contains(errs.String(), "etcdserver: leader changed") {
		t.Errorf("exit %d after %d rounds: %s", got, rounds, errs.String())
	}
}
