package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
	"github.com/gpuslice/gpuslice/test/commandline"
)

// TestWatch: list -w prints what is there, what changes of a slice, and that it is gone; and nothing else.
func TestWatch(t *testing.T) {
	server := commandline.Serve(t, commandline.World{Folders: []string{"testdata/live"}, Nodes: "testdata/cluster/nodes.yaml"})
	client, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("team-notebooks")
	pod, err := pods.Get(t.Context(), "notebook", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, in := io.Pipe()
	code := make(chan int)
	go func() {
		s := commandline.StreamsTo(&bytes.Buffer{}, &bytes.Buffer{})
		s.Out = in
		ended := program.Run(ctx, []string{"gpuslice", "list", "-n", "team-notebooks", "-w"}, s)
		in.Close()
		code <- ended
	}()
	lines := bufio.NewScanner(out)
	want := func(words ...string) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the output ended before %q: %v", words, lines.Err())
		}
		if got := strings.Fields(lines.Text()); strings.Join(got[5:7], " ") != strings.Join(words, " ") {
			t.Errorf("printed %q, want %q", lines.Text(), words)
		}
	}
	want("OBSERVED", "STATUS")
	want("-", "Running")
	change := func(edit func(*unstructured.Unstructured)) {
		t.Helper()
		edit(pod)
		pod.SetResourceVersion("")
		if _, err := pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	annotate := func(key, value string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			all := o.GetAnnotations()
			all[key] = value
			o.SetAnnotations(all)
		}
	}
	change(annotate("example.com/note", "no column shows it"))
	change(annotate("gpuslice.dev/observed", `{"state":"enforced","tier":"guard","containers":[{"name":"main","tiers":["guard"]}]}`))
	want("guard", "Running")
	if err := pods.Delete(t.Context(), "notebook", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want("guard", "Deleted")
	interrupt()
	if lines.Scan() {
		t.Errorf("printed %q besides", lines.Text())
	}
	if got := <-code; got != 0 {
		t.Errorf("exit %d after an interrupt", got)
	}
}
