package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/prove/proof"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/proofs"
)

// TestPoolsShowProofs: pools names what was proved with date and driver, and one that counts no more as such.
func TestPoolsShowProofs(t *testing.T) {
	server := serve(t, liveWorld{folders: []string{"testdata/live"}, nodes: "testdata/cluster/nodes.yaml"})
	client, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := installed.Snapshot(t.Context(), client, "gpuslice-system")
	if err != nil {
		t.Fatal(err)
	}
	all := snapshot.Pools()
	at := slices.IndexFunc(all, func(p pools.Pool) bool { return p.Driver() != "" })
	if at < 0 {
		t.Fatal("no pool has a driver")
	}
	p := &all[at]
	r := proofs.Record{Pool: p.Name, Character: p.Character(), Agents: p.Agents}
	r.Driver, r.Taken = p.Driver()+".05", time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for _, way := range proof.Ways() {
		r.Attempts = append(r.Attempts, proof.Attempt{Way: way, Held: proof.Guard})
	}
	show := func(args ...string) string {
		t.Helper()
		text, err := proofs.Encode([]proofs.Record{r})
		if err != nil {
			t.Fatal(err)
		}
		m := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{proofs.Key: text}}}
		m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		m.SetNamespace("gpuslice-system")
		m.SetName(proofs.Name)
		if err := server.Put(m); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		run(t.Context(), append([]string{"gpuslice", "pools"}, args...), streamsTo(&out, &errs))
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, p.Name+" ") {
				return strings.TrimSpace(line)
			}
		}
		t.Fatalf("the pool is not listed: %s%s", out.String(), errs.String())
		return ""
	}
	if got, want := show(), "guard (2026-11-22, driver "+r.Driver+")"; !strings.HasSuffix(got, want) {
		t.Errorf("%q does not end with %q", got, want)
	}
	r.Character = "another"
	if got := show(); !strings.HasSuffix(got, " no") {
		t.Errorf("of a proof that counts no more: %q", got)
	}
	if got := show("-o", "wide"); !strings.Contains(got, "not proven: stale: ") {
		t.Errorf("the reason is not in %q", got)
	}
}
