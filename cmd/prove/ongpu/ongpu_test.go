package ongpu

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/doctor"
	"github.com/gpuslice/gpuslice/cmd/prove/proof"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// triedOn is a record of words WAY=HOLDER on the only pool of the nodes.
func triedOn(p *pools.Pool, words string) tried {
	r := tried{Pool: p.Name}
	r.Driver, r.Taken = p.Driver()+".05", time.Date(2029, 12, 1, 0, 0, 0, 0, time.UTC)
	for word := range strings.FieldsSeq(words) {
		way, held, _ := strings.Cut(word, "=")
		r.Attempts = append(r.Attempts, proof.Attempt{Way: proof.Way(way), Held: proof.Holder(held), Detail: "detail"})
	}
	return r
}

const guarded = "cuMemAlloc=guard cuMemCreate=guard many-small=guard many-processes=guard cuMemAllocManaged=nothing"

func TestResultOf(t *testing.T) {
	t.Parallel()
	p := &pools.Pool{Name: "l4", DriverMajor: 580, DriverMinor: 95}
	for _, c := range []struct {
		name, words string
		planned     api.Tier
		level       doctor.Level
		summary     string
	}{
		{"as planned", guarded, api.TierGuard, doctor.OK, "guard is planned, and proven"},
		{"less than planned", guarded, api.TierDriver, doctor.Warning, "driver is planned, and not proven"},
		{"a leak", strings.Replace(guarded, "guard", "nothing", 1), api.TierGuard, doctor.Problem, "does not hold all that it promises"},
		{"an attempt from which nothing follows", strings.Replace(guarded, "guard", "", 1), api.TierGuard, doctor.Warning, "not proven"},
		{"nothing planned", guarded, api.TierNone, doctor.Warning, "nothing is planned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := resultOf(triedOn(p, c.words), c.planned)
			if found.Level != c.level || !strings.Contains(found.Summary, c.summary) || len(found.Evidence) < 6 {
				t.Errorf("%+v", found)
			}
		})
	}
}

func TestReadReport(t *testing.T) {
	t.Parallel()
	if _, err := readReport("gpuslice terminated prove", proof.Alloc); err == nil ||
		!strings.Contains(err.Error(), "gpuslice terminated prove") {
		t.Errorf("a message that is no report: %v", err)
	}
	const report = `{"driver": "580.95.05", "attempts": [{"way": "cuMemAlloc", "held": "guard"}, {"way": "cuMemCreate", "held": "hardware"}]}`
	if r, err := readReport(report, proof.Alloc); err != nil || len(r.Attempts) != 1 || r.Attempts[0].Way != proof.Alloc {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := readReport(report, proof.Managed); err == nil {
		t.Errorf("a report of ways that were not ordered: %+v", r)
	}
}

func TestOnGPUNeedsNamespace(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--on-gpu"}, {"--on-gpu", "-n", ""}, {"--on-gpu", "--pool", "l4"}} {
		cmd := doctor.NewVerify(cli.Streams{Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }, Now: time.Now}, New())
		cmd.SetArgs(append(args, "--kubeconfig", "/nonexistent"))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "--on-gpu needs -n NAMESPACE") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestAwaitEnd: the end of a pod that somebody changed while it ran proves nothing.
func TestAwaitEnd(t *testing.T) {
	t.Parallel()
	created := doctor.PodWith("proofs", nil)
	created.Name, created.UID = "gpuslice-prove-1", "1"
	created.Spec.Containers[0].Name, created.Spec.Containers[0].Image = "prove", "registry.example.com/guard:1"
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
		fails  bool
	}{
		{"as it was created", func(*corev1.Pod) {}, false},
		{"another image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "registry.example.com/forger:1" }, true},
		{"another container in it", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
		}, true},
		{"another pod of the name", func(p *corev1.Pod) { p.UID = "2" }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ended := created.DeepCopy()
			ended.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "prove", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
			}
			c.change(ended)
			p := prover{client: fake.NewClientset(ended), namespace: doctor.Governed{Name: "proofs"}}
			if _, err := p.awaitEnd(t.Context(), created); (err != nil) != c.fails {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestPodNodes: a node's label kubernetes.io/hostname need not be its name.
func TestPodNodes(t *testing.T) {
	t.Parallel()
	kinds := governed(t).Input.Pools[0].Nodes[:1]
	one := kinds[0].Named[0]
	kinds[0].Named = nil
	for i := range 100 {
		one.Name = fmt.Sprintf("node-%d", i)
		kinds[0].Named = append(kinds[0].Named, one)
	}
	terms := nodesOf(&pools.Pool{Nodes: kinds})
	if len(terms) != mostNodes {
		t.Fatalf("%d terms, want %d", len(terms), mostNodes)
	}
	for i, term := range terms {
		want := []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprintf("node-%d", i)}},
		}
		if diff := cmp.Diff(want, term.MatchFields); diff != "" || len(term.MatchExpressions) > 0 {
			t.Errorf("term %d: %s", i, diff)
		}
	}
}

func TestPodOfPool(t *testing.T) {
	t.Parallel()
	g := governed(t)
	g.Input.Guard = &config.GuardSettings{Image: "registry.example.com/guard:1", PullSecret: "secret"}
	p := prover{namespace: g}
	tried := p.pools()
	if len(tried) != 1 {
		t.Fatalf("pools: %+v", tried)
	}
	if _, decision, ok := p.labels(&tried[0]); !ok {
		t.Errorf("no slice of the pool: %s", doctor.Answer(decision))
	}
	if pod := p.pod(&tried[0], nil, proof.Alloc); len(pod.Spec.ImagePullSecrets) != 1 || pod.Spec.Containers[0].Image != g.Input.Guard.Image {
		t.Errorf("%+v", pod.Spec)
	}
}

// governed is a namespace with a pool of time-slicing.
func governed(t *testing.T) doctor.Governed {
	t.Helper()
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s scenarios.Scenario) bool { return s.Name == "framework-pytorch-2-4" })
	in := all[i].Governed()
	return doctor.Governed{Name: in.Namespace.Name, Input: in}
}
