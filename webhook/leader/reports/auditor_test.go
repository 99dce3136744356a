package reports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	policyconfig "github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/governed"
)

// answers is an API server that keeps nothing: it counts what is asked.
type answers struct {
	pods    map[string][]string // of each namespace, as JSON
	reports int                 // of earlier audits, in namespaces that nobody governs
	absent  bool                // the API of reports

	asked   map[string]int
	written map[string]Report
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := http.StatusOK, "{}"
	namespace, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"), "/")
	switch query := r.URL.Query(); {
	case strings.HasSuffix(r.URL.Path, "/pods"):
		a.asked["pods of "+namespace]++
		body = part(query.Get("limit"), query.Get("continue"), a.pods[namespace])
	case strings.Contains(r.URL.Path, "mutatingwebhook"):
		body = `{"kind":"MutatingWebhookConfiguration","apiVersion":"admissionregistration.k8s.io/v1","webhooks":[{"name":"pods.gpuslice.dev","namespaceSelector":{}}]}`
	case r.Method == http.MethodPatch:
		var written Report
		text, err := io.ReadAll(r.Body)
		if err := errors.Join(err, json.Unmarshal(text, &written)); err != nil {
			return nil, err
		}
		a.written[written.Metadata.Namespace] = written
	case r.Method == http.MethodDelete:
		a.asked["delete"]++
	case strings.HasSuffix(r.URL.Path, "/reports"):
		a.asked["reports as "+r.Header.Get("Accept")]++
		var items []string
		for i := range a.reports {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"gpuslice-audit","namespace":"old-%d"}}`, i))
		}
		body = part(query.Get("limit"), query.Get("continue"), items)
	case a.absent:
		status, body = http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","code":404,"reason":"NotFound"}`
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// part is the part of a list that a request asks for.
func part(limit, next string, items []string) string {
	n, _ := strconv.Atoi(limit)
	from, _ := strconv.Atoi(next)
	to := min(from+n, len(items))
	following := ""
	if to < len(items) {
		following = strconv.Itoa(to)
	}
	return fmt.Sprintf(`{"metadata":{"continue":%q},"items":[%s]}`, following, strings.Join(items[from:to], ","))
}

// audits makes an Auditor of namespaces that share a budget of one GPU.
func audits(t *testing.T, of *answers, namespaces ...string) *Auditor {
	t.Helper()
	of.asked, of.written = map[string]int{}, map[string]Report{}
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://audit", QPS: -1}, &http.Client{Transport: of})
	if err != nil {
		t.Fatal(err)
	}
	p, problems := policyconfig.Parse("gpuslice-system/p",
		[]byte("apiVersion: gpuslice.dev/v1\nenforcementMode: audit\nquota: {gpus: 1, budget: all}\nnamespaces: {names: [a]}\n"))
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	return NewAuditor(Options{
		Client: client, Interval: time.Hour, Configurations: []string{"gpuslice"}, Log: logr.Discard(), Ready: func() error { return nil },
		Governed: func() (out []governed.Namespace, err error) {
			for _, namespace := range namespaces {
				out = append(out, governed.Namespace{Name: namespace, Policy: p})
			}
			return out, nil
		},
		InputOf: func(_ context.Context, pod *corev1.Pod) (policies.Input, error) {
			return policies.Input{Policy: p, Namespace: api.Namespace{Name: pod.Namespace}}, nil
		},
		QuotaOf: func(in policies.Input) quota.Quota { return in.Policy.QuotaFor(in.Namespace.Name) },
	})
}

// living is a pod that requests GPUs.
func living(namespace, name, gpus string, created int) string {
	return fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q,"uid":%q,"creationTimestamp":"2026-01-01T00:00:%02dZ"},
		"spec":{"containers":[{"name":"a","image":"busybox","resources":{"limits":{"nvidia.com/gpu":%q}}}]}}`,
		namespace, name, namespace+name, created, gpus)
}

// TestSharedBudget reads each namespace of a budget once, and counts the quota over all.
func TestSharedBudget(t *testing.T) {
	t.Parallel()
	of := &answers{pods: map[string][]string{"team-7": {living("team-7", "young", "1", 2)}, "team-9": {living("team-9", "old", "1", 1)}}}
	var namespaces []string
	for i := range 100 {
		namespaces = append(namespaces, fmt.Sprint("team-", i))
	}
	if err := audits(t, of, namespaces...).audit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range namespaces {
		if n := of.asked["pods of "+namespace]; n != 1 {
			t.Errorf("pods of %s are listed %d times", namespace, n)
		}
	}
	if len(of.written) != 100 || of.written["team-7"].Summary[failed] != 1 || of.written["team-9"].Summary[failed] != 0 {
		t.Errorf("of two pods of which the budget has room for the older: %d reports, %v, %v",
			len(of.written), of.written["team-7"], of.written["team-9"])
	}
}

// TestOddPods: a pod that costs seconds to decide is denied, as by the webhook. One on which the evaluation fails is an error beside the
// others. Neither takes room in the quota: enforce lets neither in.
func TestOddPods(t *testing.T) {
	t.Parallel()
	of := &answers{pods: map[string][]string{"a": {living("a", "costly", "10e9999999", 1),
		living("a", "odd", "1", 1), living("a", "plain", "0", 1),
		living("a", "one", "1", 2), living("a", "two", "2", 2)}}}
	a := audits(t, of, "a")
	inputOf := a.reader.InputOf
	a.reader.InputOf = func(ctx context.Context, pod *corev1.Pod) (policies.Input, error) {
		in, err := inputOf(ctx, pod)
		if pod.Name == "odd" {
			in.LimitRanges = []*corev1.LimitRange{nil} // reading it panics
		}
		return in, err
	}
	if err := a.audit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := of.written["a"]
	got := map[string]string{}
	for _, result := range r.Results {
		got[result.Resources[0].Name] = result.Result + " " + result.Rule
	}
	want := map[string]string{"costly": "fail request", "odd": "error ", "two": "fail quota"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{passed: 0, failed: 2, warned: 0, erred: 1, skipped: 2}, r.Summary); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	a = audits(t, of, "a")
	a.options.Governed = func() ([]governed.Namespace, error) { panic("odd") }
	if err := a.audit(t.Context()); err == nil || !strings.Contains(err.Error(), "panic: odd") {
		t.Errorf("an audit that panics: %v", err)
	}
}

// TestPages reads pods and Reports in pages, and of Reports their metadata alone.
func TestPages(t *testing.T) {
	t.Parallel()
	of := &answers{pods: map[string][]string{}, reports: 1200}
	for i := range 120 {
		of.pods["a"] = append(of.pods["a"], living("a", fmt.Sprint("p-", i), "0", 1))
	}
	if err := audits(t, of, "a").audit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"pods of a": 3, "delete": 1200, "reports as application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": 3}
	if diff := cmp.Diff(want, of.asked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := of.written["a"].Summary[skipped]; n != 120 {
		t.Errorf("%d of 120 pods are counted", n)
	}
}

// TestForget keeps nothing of a pod that its author can make large.
func TestForget(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", UID: "1", Annotations: map[string]string{"a": long},
		Labels:        map[string]string{"l": "x", "gpuslice.dev/memory": long},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: long}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Command: []string{long}}}}}
	p := Evaluate(policies.Input{Policy: &policyconfig.Policy{EnforcementMode: api.EnforceAudit}}, pod)
	p.Forget()
	text, err := json.Marshal([]any{p.Pod, p.in.Pod, p.in.Claims, p.in.LimitRanges, p.Decision, p.holding, p.subject})
	if err != nil || len(text) > 4096 {
		t.Errorf("%v, %d bytes are kept of a pod", err, len(text))
	}
	if p.subject.Result != failed {
		t.Errorf("a pod with a label that is no amount: %+v", p.subject)
	}
}

// TestUnreadablePods: no team reads of a denial of a pod that the webhook is not asked about. What is wrong with a pod's text is said.
func TestUnreadablePods(t *testing.T) {
	t.Parallel()
	pod := func(name, container, more string) string {
		return fmt.Sprintf(`{"metadata":{"namespace":"a","name":%q,"labels":{%s}},"spec":{"containers":[{"name":"a","image":"busybox"%s}]}}`,
			name, more, container)
	}
	many := `,"env":[` + strings.TrimSuffix(strings.Repeat(`{"name":"VARIABLE"},`, 20_001), ",") + "]"
	of := &answers{pods: map[string][]string{"a": {
		pod("large", many, ""),
		pod("large-gpu", many+`,"resources":{"limits":{"nvidia.com/gpu":"1"}}`, ""),
		pod("large-init-gpu", `}],"initContainers":[{"name":"b"`+many+`,"resources":{"requests":{"nvidia.com/mig-1g.5gb":"1"}}`, ""),
		pod("large-label", many, `"gpuslice.dev/memory":"4Gi"`),
		pod("large-lookalike", many+`,"command":["nvidia.com/gpu"],"resources":{"limits":{"cpu":"1"},"x":{"nvidia.com/gpu":"1"}}`,
			`"x":"gpuslice.dev/memory"`),
		pod("costly", `,"resources":{"limits":{"cpu":"1e9999999"}}`, ""),
		pod("costly-gpu", `,"resources":{"limits":{"nvidia.com/gpu":"1e9999999"}}`, ""),
		pod("odd", `,"ports":"`+strings.Repeat("x", 5000)+`"`, ""),
		living("a", "one", "1", 2),
	}}}
	if err := audits(t, of, "a").audit(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"large":           "error : the pod is too large: the pod has more than 20000 objects and lists; denied if it uses a GPU",
		"large-gpu":       "fail size: the pod is too large",
		"large-init-gpu":  "fail size: the pod is too large",
		"large-label":     "fail size: the pod is too large",
		"large-lookalike": "error : the pod is too large: the pod has more than 20000 objects and lists; denied if it uses a GPU",
		"costly":          "error : ",
		"costly-gpu":      "fail request: ",
		"odd":             "error : the pod cannot be evaluated: read pod: ",
	}
	for _, result := range of.written["a"].Results {
		name, got := result.Resources[0].Name, fmt.Sprintf("%s %s: %s", result.Result, result.Rule, result.Message)
		if part, ok := want[name]; !ok || !strings.HasPrefix(got, part) || len(result.Message) > maxMessage+3 {
			t.Errorf("%s: got %q, want %q", name, got, part)
		}
		if result.Result == erred && strings.HasPrefix(name, "costly") && !strings.HasSuffix(result.Message, "; denied if it uses a GPU") {
			t.Errorf("%s: %s", name, result.Message)
		}
		delete(want, name)
	}
	if len(want) > 0 || of.written["a"].Summary[passed]+of.written["a"].Summary[skipped] != 1 {
		t.Errorf("without a result: %v; %v", want, of.written["a"].Summary)
	}
}

// TestRun waits after it leads, waits until the cluster is known, and tries again sooner than after an interval.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		interval time.Duration
		failures int
		want     []time.Duration // after the start
	}{
		"a cluster that is known": {time.Hour, 0, []time.Duration{5 * time.Minute, 65 * time.Minute}},
		"a cluster that is known later": {time.Hour, 2,
			[]time.Duration{5 * time.Minute, 5*time.Minute + 30*time.Second, 6*time.Minute + 30*time.Second,
				66*time.Minute + 30*time.Second}},
		"a short interval": {time.Minute, 3,
			[]time.Duration{5 * time.Minute, 5*time.Minute + 30*time.Second, 6*time.Minute + 30*time.Second, 7*time.Minute + 30*time.Second}},
		"for long": {24 * time.Hour, 8,
			[]time.Duration{300 * time.Second, 330 * time.Second, 390 * time.Second, 510 * time.Second, 750 * time.Second,
				1230 * time.Second, 1830 * time.Second, 2430 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				of := &answers{absent: true}
				a := audits(t, of)
				ctx, stop := context.WithCancel(t.Context())
				start, failures := time.Now(), tt.failures
				var got []time.Duration
				a.options.Interval, a.options.Ready = tt.interval, func() error {
					if got = append(got, time.Since(start)); len(got) == len(tt.want) {
						stop()
					}
					if failures--; failures >= 0 {
						return errors.New("policies are not read yet")
					}
					return nil
				}
				if err := a.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}
