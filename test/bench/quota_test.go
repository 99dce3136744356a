package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// Ways to create a pod under a quota. The first three are among the namespaces that our configuration leaves out.
const (
	noWebhook    = "gpu-operator"
	onlyAnswers  = "nvidia-device-plugin"
	nativeQuota  = "kube-public"
	unlimited    = "without-quota" // ours, mutating and validating, with no quota to ask
	withLedger   = "with-quota"
	quotaCreates = 400 // a round
)

// TestPrintQuotaCreates prints the time that creating a pod takes: with no webhook, with one that only answers, with a
// native ResourceQuota, and with ours with and without a ledger to ask. The pod asks for a whole GPU, which ours leaves
// as it is, so that the difference is the quota's and not the rewriting's; make bench prints that one.
func TestPrintQuotaCreates(t *testing.T) {
	server := cluster.ForTest(t, cluster.Options{})
	dir := t.TempDir()
	binary, err := install.Binary(t.Context(), dir, "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	i, err := install.NewWith(t.Context(), server, binary, dir, install.Options{Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	setUpQuota(t, i)
	were := 0
	for _, there := range counts(t, "GPUSLICE_CROWDS", 0, "0,5000") {
		fill(t, i, withLedger, there-were)
		fill(t, i, onlyAnswers, there-were)
		printQuotaRows(t, i, there)
		were = there
	}
}

func setUpQuota(t *testing.T, i *install.Installation) {
	t.Helper()
	ctx := t.Context()
	for _, namespace := range []string{noWebhook, onlyAnswers, unlimited, withLedger} {
		if err := i.Server.Namespace(ctx, namespace, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Server.DefaultAccount(ctx, nativeQuota); err != nil { // the server makes this namespace itself
		t.Fatal(err)
	}
	for namespace, quota := range map[string]string{unlimited: "", withLedger: "quota: {gpus: 1000000}\n"} {
		if err := i.Policy(ctx, namespace, []byte("apiVersion: gpuslice.dev/v1\nnamespaces: {names: ["+namespace+"]}\n"+quota)); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	register(t, i.Server, onlyAnswers, func(*admissionv1.AdmissionRequest) []byte { return nil })
	hard := corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("1000000")}
	quotas := i.Server.Client.CoreV1().ResourceQuotas(nativeQuota)
	made, err := quotas.Create(ctx,
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	if err == nil { // no controller runs that would do it
		made.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("0")}}
		_, err = quotas.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{onlyAnswers, nativeQuota, unlimited, withLedger} { // the first call of each opens its connections
		wholes(t, i, namespace, 100, 200)
	}
}

func printQuotaRows(t *testing.T, i *install.Installation, there int) {
	fmt.Printf("%d pods there\n%-10s %-22s %10s %10s %12s %10s\n", there, "in flight", "quota", "p50", "p99", "creates/s", "time")
	for _, flight := range []int{1, 100} {
		times, took := map[string][]time.Duration{}, map[string]time.Duration{}
		before := ledgerCounts(t, i.Replicas)
		n := quotaCreates / (1 + 3/flight) // a quarter where they come one by one
		for range rounds {
			for _, namespace := range []string{noWebhook, onlyAnswers, nativeQuota, unlimited, withLedger} {
				begin := time.Now()
				times[namespace] = append(times[namespace], wholes(t, i, namespace, flight, n)...)
				took[namespace] += time.Since(begin)
			}
		}
		after := ledgerCounts(t, i.Replicas)
		for _, row := range []struct{ name, namespace string }{
			{"no webhook", noWebhook}, {"only answers", onlyAnswers}, {"native ResourceQuota", nativeQuota},
			{"gpuslice, no quota", unlimited}, {"gpuslice, its ledger", withLedger},
		} {
			all := times[row.namespace]
			fmt.Printf("%-10d %-22s %10s %10s %12.0f %9.2fx\n", flight, row.name, quantile(all, 50).Round(10*time.Microsecond),
				quantile(all, 99).Round(10*time.Microsecond), float64(len(all))/took[row.namespace].Seconds(),
				float64(took[row.namespace])/float64(took[onlyAnswers]))
		}
		per := 1000 / float64(rounds*n)
		fmt.Printf("%-10d per 1000 creates: %.0f writes, %.0f conflicts, %.0f reads, %.0f lists\n",
			flight, (after["writes"]-before["writes"])*per,
			(after["conflicts"]-before["conflicts"])*per, (after["reads"]-before["reads"])*per, (after["lists"]-before["lists"])*per)
	}
}

// whole is a pod that asks for one GPU.
func whole() *corev1.Pod {
	p := pod()
	p.Labels = nil
	return p
}

// wholes creates n pods with so many in flight, removes them, and returns how long each create took.
func wholes(t *testing.T, i *install.Installation, namespace string, flight, n int) []time.Duration {
	t.Helper()
	times, made := load{namespace: namespace, pod: whole, flight: flight, n: n}.create(t, i)
	pods := i.Server.Client.CoreV1().Pods(namespace)
	var removing sync.WaitGroup
	places := make(chan struct{}, 20)
	for _, name := range made {
		places <- struct{}{}
		removing.Go(func() {
			defer func() { <-places }()
			if err := pods.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
				t.Error(err)
			}
		})
	}
	removing.Wait()
	return times
}

// fill creates pods that stay.
func fill(t *testing.T, i *install.Installation, namespace string, n int) {
	t.Helper()
	if n > 0 {
		load{namespace: namespace, pod: whole, flight: 50, n: n}.create(t, i)
	}
}

var ledgerMetric = regexp.MustCompile(`(?m)^gpuslice_ledger_(\w+)_total (\S+)$`)

// ledgerCounts adds up what the replicas' ledgers have done.
func ledgerCounts(t *testing.T, replicas []*install.Process) map[string]float64 {
	t.Helper()
	sums := map[string]float64{}
	for _, p := range replicas {
		response, err := http.Get("http://" + p.Probes + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ledgerMetric.FindAllStringSubmatch(string(text), -1) {
			n, err := strconv.ParseFloat(strings.TrimSpace(m[2]), 64)
			if err != nil {
				t.Fatal(err)
			}
			sums[m[1]] += n
		}
	}
	return sums
}
