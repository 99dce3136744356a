package bench

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/memoryapi"
)

// What fills the ledgers: so many creates at a time, each to one of the replicas, until each namespace has its quota.
const (
	ledgerReplicas = 3
	ledgerFlight   = 100
	ledgerNodes    = 100
)

// TestPrintLedgers prints what a create takes while all namespaces fill their quotas at once, one namespace after the other in turn.
// No create may be denied that fits, and then each namespace is full. The API server is generated: it keeps ledgers and pods in memory.
func TestPrintLedgers(t *testing.T) {
	if !cluster.Wanted("long") {
		t.Skip("prints a figure: set GPUSLICE_TEST=long to run it (make bench-scale)")
	}
	each, err := strconv.Atoi(cmp.Or(os.Getenv("GPUSLICE_PODS"), "20"))
	if err != nil || each < 1 {
		t.Fatalf("GPUSLICE_PODS is %q: write how many pods a namespace gets", os.Getenv("GPUSLICE_PODS"))
	}
	c, replicas := governed(t, fmt.Sprintf("quota: {slices: %d}\n", each))
	before, cpu, begin := ledgerCounts(t, replicas), cpuOfAll(t, replicas), time.Now()
	times, left := c.fillAll(replicas, teams*each)
	took, used, after := time.Since(begin), cpuOfAll(t, replicas)-cpu, ledgerCounts(t, replicas)
	per := 1000 / float64(teams*each)
	fmt.Printf("%d namespaces of %d pods, %d replicas, %d in flight: p50 %s, p99 %s, %.0f creates/s, %s of CPU each; per 1000: %.0f writes, %.0f conflicts, %.0f lists; memory at most",
		teams, each, ledgerReplicas, ledgerFlight, quantile(times, 50).Round(10*time.Microsecond), quantile(times, 99).Round(10*time.Microsecond),
		float64(len(times))/took.Seconds(), (used / time.Duration(len(times))).Round(10*time.Microsecond),
		(after["writes"]-before["writes"])*per, (after["conflicts"]-before["conflicts"])*per, (after["lists"]-before["lists"])*per)
	for _, p := range replicas {
		fmt.Printf(" %d MiB", peakOf(t, p.PID())>>20)
	}
	fmt.Println()
	c.askAll(replicas, teams*each, teams, func(k int, answer install.Answer) {
		if answer.Denied == nil && left[k].Load() == 0 {
			t.Errorf("namespace %s is full, and a pod more is not denied", team(k))
		}
	})
}

// governed are replicas beside a cluster all of whose namespaces have the policy.
func governed(t *testing.T, policy string) (*generated, []*install.Process) {
	t.Helper()
	server, err := memoryapi.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	c := &generated{T: t, server: server}
	c.put(install.PolicyObject("default", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing, mps, mig]\n"+policy)))
	c.namespaces()
	c.nodes(ledgerNodes)
	dir := t.TempDir()
	binary, err := install.Binary(t.Context(), dir, "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	var replicas []*install.Process
	for k := range ledgerReplicas {
		var p *install.Process
		if k == 0 {
			p, err = install.InMemory(t.Context(), server, binary, dir)
		} else {
			p, err = install.ReplicaInMemory(t.Context(), server, binary, dir, "replica-"+strconv.Itoa(k))
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		c.knows(p, ledgerNodes)
		replicas = append(replicas, p)
	}
	return c, replicas
}

// fillAll creates n pods and returns how long the replicas took for each, and how many were denied in each namespace: all fit.
func (c *generated) fillAll(replicas []*install.Process, n int) (times []time.Duration, denied *[teams]atomic.Int64) {
	denied = &[teams]atomic.Int64{}
	times = c.askAll(replicas, 0, n, func(k int, answer install.Answer) {
		if answer.Pod == nil {
			denied[k%teams].Add(1)
			c.Errorf("a pod that fits was denied: %s", answer.Denied.Message)
			return
		}
		if err := c.server.PutShared(answer.Pod); err != nil {
			c.Error(err)
		}
	})
	return times, denied
}

// askAll asks the replicas about n pods from the first on, those of the namespaces in turn, and returns how long each answer took.
func (c *generated) askAll(replicas []*install.Process, first, n int, answered func(int, install.Answer)) []time.Duration {
	times := make([]time.Duration, n)
	work := make(chan int)
	var workers sync.WaitGroup
	for w := range ledgerFlight {
		asker := c.asker(replicas[w%len(replicas)]) // a connection for each, as API servers keep them
		workers.Go(func() {
			for k := range work {
				start := time.Now()
				answer, err := asker.Create(c.Context(), c.askedIn(first+k))
				if times[k] = time.Since(start); err != nil {
					c.Error(err)
					continue
				}
				answered(k, answer)
			}
		})
	}
	for k := range n {
		work <- k
	}
	close(work)
	workers.Wait()
	return times
}

func (c *generated) asker(p *install.Process) *install.Asker {
	c.Helper()
	asker, err := install.NewAsker(c.Context(), c.server.Config, p)
	if err != nil {
		c.Fatal(err)
	}
	return asker
}

// askedIn is the pod that replicas are asked about, in the namespace whose turn it is. No two have a name: only one could be there.
func (c *generated) askedIn(k int) *unstructured.Unstructured {
	pod := c.asked()
	pod.SetNamespace(team(k % teams))
	pod.SetName("train-" + strconv.Itoa(k))
	return pod
}

func (c *generated) namespaces() {
	c.Helper()
	for k := range teams {
		name := team(k)
		c.put(&corev1.Namespace{TypeMeta: kindOf("Namespace"), ObjectMeta: named("", name, map[string]string{corev1.LabelMetadataName: name})})
	}
}

func cpuOfAll(t *testing.T, all []*install.Process) (sum time.Duration) {
	t.Helper()
	for _, p := range all {
		sum += cpuOf(t, p.PID())
	}
	return sum
}
