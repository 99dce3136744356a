package main

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/guard/status"
)

// TestLate: an agent that gets no CPU reports so on its node, once, and on no pod.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		written := newEventWriter(t.Context(), client, nodeName)
		r := &reporter{log: slog.New(slog.DiscardHandler), events: written, node: nodeName,
			recorder: status.New(func(string) (node.Pod, bool) { return node.Pod{}, true })}
		sampleAfter := func(d time.Duration) {
			time.Sleep(d)
			r.Sampled(node.Sample{Taken: time.Now()})
			synctest.Wait()
		}
		inTime := guard.MaxSampleGap(limits.Default())
		sampleAfter(0)
		sampleAfter(time.Hour) // no pod
		var guards []guard.Guard
		for _, name := range []string{"a", "b", "c"} {
			p := node.Pod{UID: name, Namespace: "team-a", Name: name, Limits: limits.Default()}
			guards = append(guards, guard.Guard{Limits: p.Limits, Reporter: r.Pod(p)})
		}
		for _, gap := range []time.Duration{inTime, 2 * inTime, inTime, 2 * inTime} {
			sampleAfter(gap)
			for i := range guards {
				guards[i].Advance(t.Context(), guard.Sample{Taken: time.Now(), ByAgent: true})
			}
		}
		for range 12 {
			sampleAfter(time.Minute / 12)
		}
		sampleAfter(2 * inTime)
		written.Close()
		list, err := client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var reported int32
		for _, e := range list.Items {
			reported += e.Count
			if e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name != nodeName || e.Namespace != "default" || e.Reason != reasonNotEnforcing ||
				!strings.Contains(e.Message, guard.FormatDuration(2*inTime)) {
				t.Errorf("%s on %s %s: %s", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
			}
		}
		if reported != 2 { // and again after a minute in time
			t.Errorf("%d Events on the node: %+v", reported, list.Items)
		}
		if reasons := r.recorder.Report(time.Now()).NotEnforced; len(reasons) > 0 {
			t.Errorf("of pods: %v", reasons)
		}
	})
}
