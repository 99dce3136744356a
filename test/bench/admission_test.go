package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// Namespaces of the ways to create a pod. All but the last are among those that our configuration leaves out.
const (
	without   = "gpu-operator"
	answering = "nvidia-device-plugin"
	patching  = "kube-public"
	ours      = "team-a"
)

const rounds = 5

// TestPrintPodCreates prints the time that creating a pod takes through a real API server: with no webhook, with one that
// only answers, with one that answers with a fixed patch (what our own answer costs the server, whoever gives it), and
// with ours. They take turns, so that what else the machine does hits all alike.
func TestPrintPodCreates(t *testing.T) {
	server := cluster.ForTest(t, cluster.Options{})
	ctx, dir := t.Context(), t.TempDir()
	binary, err := install.Binary(ctx, dir, "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	i, err := install.New(ctx, server, binary, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	setUp(t, i)
	fmt.Printf("%-10s %-22s %10s %10s %10s\n", "in flight", "webhook", "p50", "p99", "ratio")
	for _, flight := range []int{1, 10, 100} {
		times := map[string][]time.Duration{}
		for range rounds {
			for _, namespace := range []string{without, answering, patching, ours} {
				times[namespace] = append(times[namespace], creates(t, i, namespace, flight, 40*min(flight, 10))...)
			}
		}
		base := quantile(times[answering], 50)
		for _, row := range []struct{ name, namespace string }{{"none", without}, {"only answers", answering}, {"a fixed patch", patching}, {"gpuslice", ours}} {
			all := times[row.namespace]
			fmt.Printf("%-10d %-22s %10s %10s %9.2fx\n", flight, row.name, quantile(all, 50).Round(10*time.Microsecond),
				quantile(all, 99).Round(10*time.Microsecond), float64(quantile(all, 50))/float64(base))
		}
	}
}

func setUp(t *testing.T, i *install.Installation) {
	t.Helper()
	ctx := t.Context()
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed", "a100-mig-mixed", "h100-mps-plugin", "t4-plain-old-driver")
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{without, answering, ours} {
		if err := i.Server.Namespace(ctx, namespace, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Server.DefaultAccount(ctx, patching); err != nil { // the server makes this namespace itself
		t.Fatal(err)
	}
	if err := i.Policy(ctx, "default", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing, mps, mig]\n")); err != nil {
		t.Fatal(err)
	}
	if err := i.Nodes(ctx, nodes...); err != nil {
		t.Fatal(err)
	}
	if err := i.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	register(t, i.Server, answering, func(*admissionv1.AdmissionRequest) []byte { return nil })
	register(t, i.Server, patching, fixedPatch(t))
	for _, namespace := range []string{answering, patching, ours} { // the first call of each opens its connections
		creates(t, i, namespace, 10, 50)
	}
}

// fixedPatch answers every pod with the patch that our own webhook would give the first one.
func fixedPatch(t *testing.T) func(*admissionv1.AdmissionRequest) []byte {
	var once sync.Once
	var patch []byte
	token := regexp.MustCompile(`kube-api-access-[a-z0-9]+`) // the one name that differs from pod to pod
	return func(r *admissionv1.AdmissionRequest) []byte {
		once.Do(func() {
			raw, _, err := promise.DecodePod(r.Object.Raw)
			if err != nil {
				t.Error(err)
				return
			}
			in, err := typical()
			if err != nil {
				t.Error(err)
				return
			}
			_, ops := policies.Create(in, raw, promise.Keys{})
			if patch, err = json.Marshal(ops); err != nil {
				t.Error(err)
			}
		})
		return token.ReplaceAll(patch, token.Find(r.Object.Raw))
	}
}

// register registers a webhook that says yes to every pod of its namespace, with the patch that answer gives.
func register(t *testing.T, server *cluster.APIServer, namespace string, answer func(*admissionv1.AdmissionRequest) []byte) {
	t.Helper()
	const service = "answers"
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if patch := answer(review.Request); patch != nil {
			review.Response.Patch, review.Response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	var err error
	if s.TLS, err = server.ServingCertificate(service, service+"."+namespace+".svc"); err != nil {
		t.Fatal(err)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	if err := server.SetEndpoints(t.Context(), namespace, service, s.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	_, err = server.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: service + "-" + namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "answers.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects:       new(admissionregistrationv1.SideEffectClassNone),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{CABundle: server.CA(), Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: service}},
			Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// creates creates n pods with so many in flight, removes them, and returns how long each took.
func creates(t *testing.T, i *install.Installation, namespace string, flight, n int) []time.Duration {
	t.Helper()
	times, _ := load{namespace: namespace, pod: pod, sliced: namespace == ours || namespace == patching, flight: flight, n: n}.create(t, i)
	pods := i.Server.Client.CoreV1().Pods(namespace)
	if err := pods.DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	return times
}

// load is n pods that are created in a namespace, so many at a time.
type load struct {
	namespace string
	pod       func() *corev1.Pod
	sliced    bool // what has to come of them
	flight, n int
}

// create returns how long each create took, and the pods' names.
func (l load) create(t *testing.T, i *install.Installation) (times []time.Duration, names []string) {
	t.Helper()
	pods := i.Server.Client.CoreV1().Pods(l.namespace)
	times, names = make([]time.Duration, l.n), make([]string, l.n)
	work := make(chan int)
	var workers sync.WaitGroup
	for range l.flight {
		workers.Go(func() {
			for k := range work {
				start := time.Now()
				made, err := pods.Create(t.Context(), l.pod(), metav1.CreateOptions{})
				times[k] = time.Since(start)
				if err != nil {
					t.Error(err)
					continue
				}
				if _, sliced := made.Annotations[api.AnnotationPlanned]; sliced != l.sliced {
					t.Errorf("a pod in %s is sliced: %v", l.namespace, sliced)
				}
				names[k] = made.Name
			}
		})
	}
	for k := range l.n {
		work <- k
	}
	close(work)
	workers.Wait()
	return times, names
}

func pod() *corev1.Pod {
	quantities := corev1.ResourceList{api.ResourceGPU: resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("4")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "train-", Labels: map[string]string{api.LabelMemory: "4Gi"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "trainer", Image: "pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime",
			Resources: corev1.ResourceRequirements{Limits: quantities}}}},
	}
}

func quantile(times []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// TestPrintCommandLineStart prints how long the command line takes to say its version.
func TestPrintCommandLineStart(t *testing.T) {
	if !cluster.Wanted("apiserver") {
		t.Skip("prints a figure: set GPUSLICE_TEST=apiserver to run it (make bench)")
	}
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/gpuslice", "-s", "-w")
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Duration
	for range 50 {
		start := time.Now()
		if out, err := exec.CommandContext(t.Context(), binary, "version").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		times = append(times, time.Since(start))
	}
	size, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(strings.TrimSpace(fmt.Sprintf("command line: start p50 %s, p99 %s, %.1f MB", quantile(times, 50).Round(10*time.Microsecond),
		quantile(times, 99).Round(10*time.Microsecond), float64(size.Size())/1e6)))
}
