package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/preview"
	"github.com/gpuslice/gpuslice/policies"
	policyconfig "github.com/gpuslice/gpuslice/policies/config"
)

// pods is an API server that lists pods, in one part however many are asked for.
type pods struct {
	items  []string
	limits []string // of the requests
}

func (p *pods) RoundTrip(r *http.Request) (*http.Response, error) {
	body := `{"items":[]}`
	if strings.HasSuffix(r.URL.Path, "/pods") {
		p.limits = append(p.limits, r.URL.Query().Get("limit"))
		body = `{"items":[` + strings.Join(p.items, ",") + `]}`
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// auditorOf audits the pods of namespace a under a policy of one GPU.
func auditorOf(t *testing.T, of *pods) *auditor {
	t.Helper()
	client, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://audit", QPS: -1}, &http.Client{Transport: of})
	if err != nil {
		t.Fatal(err)
	}
	p, problems := policyconfig.Parse("gpuslice-system/p",
		[]byte("apiVersion: gpuslice.dev/v1\nenforcementMode: audit\nquota: {gpus: 1}\nnamespaces: {names: [a]}\n"))
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	c := &clusters.Cluster{Book: policyconfig.NewBook([]*policyconfig.Policy{p}), Labels: map[string]map[string]string{"a": nil}}
	scope := installed.ScopeOf([]*admissionv1.MutatingWebhookConfiguration{{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/name": "gpuslice"}},
		Webhooks:   []admissionv1.MutatingWebhook{{Name: "pods.gpuslice.dev", NamespaceSelector: &metav1.LabelSelector{}}},
	}}, "gpuslice-system")
	return &auditor{client: client, engine: preview.New(c), scope: scope, items: []audited{{Namespace: "a"}}}
}

// podOf is a pod of namespace a.
func podOf(name, labels, container string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"a","name":%q,"uid":%q,"labels":{%s},"annotations":{"long":%q}},"spec":{"containers":[{"name":"a","image":"busybox"%s}]}}`,
		name, name, labels, strings.Repeat("x", 100_000), container)
}

// TestPodsKeepLittle: what is found about each pod of a large budget stays, and not the pod.
func TestPodsKeepLittle(t *testing.T) {
	t.Parallel()
	gpu := `,"resources":{"limits":{"nvidia.com/gpu":"1"}}`
	of := &pods{items: []string{podOf("one", "", gpu), podOf("two", "", gpu), podOf("plain", "", ""),
		podOf("bad", `"gpuslice.dev/memory":"much"`, "")}}
	a := auditorOf(t, of)
	all, err := a.pods(t.Context(), []string{"a"}, map[string]*audited{"a": &a.items[0]})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all.pods {
		if text, err := json.Marshal(p.Pod); err != nil || len(text) > 1024 {
			t.Errorf("%v, %d bytes are kept of pod %s", err, len(text), p.Pod.Name)
		}
	}
	if err := a.addPods(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"one": "unchanged no slice requested", "two": "denied quota", "plain": "unchanged no GPU requested", "bad": "denied request"}
	got := outcomes(a)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"500", "500"}, of.limits); diff != "" {
		t.Errorf("how many pods are asked for at once (-want +got)\n%s", diff)
	}
}

// TestSchedulersClaims: a claim that the scheduler made for an extended resource of a pod is no problem, and one that is named like it is.
func TestSchedulersClaims(t *testing.T) {
	t.Parallel()
	const made, forged = "train-extended-resources-x2b7k", "train-extended-resources-forged"
	pod := podOf("train", "", "")
	a := auditorOf(t,
		&pods{items: []string{pod[:len(pod)-1] + `,"status":{"extendedResourceClaimStatus":{"resourceClaimName":"` + made + `"}}}`}})
	a.items[0].Claims = members(map[string]string{made: "takes devices", forged: "takes devices"}, map[string]string{made: "takes devices"})
	if err := a.addPods(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []member{{"ResourceClaim", forged, "takes devices"}, {"ResourceClaimTemplate", made, "takes devices"}}
	if diff := cmp.Diff(want, a.items[0].Claims); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// outcomes are the outcome and rule, or the error, of each pod of namespace a.
func outcomes(a *auditor) map[string]string {
	out := map[string]string{}
	for _, g := range a.items[0].Groups {
		for _, m := range g.Examples {
			out[m.Name] = string(g.IfEnforced) + " " + g.Rule
		}
	}
	for _, failed := range a.errors {
		at, why, _ := strings.Cut(failed.Err.Error(), ": ")
		out[strings.TrimPrefix(at, "Pod a/")] = "error " + why
	}
	return out
}

// TestOddPods: a pod that costs seconds to decide is denied, as by the webhook, and takes no room in the quota. No denial is reported of
// a pod that the webhook is not asked about.
func TestOddPods(t *testing.T) {
	t.Parallel()
	many := `,"env":[` + strings.TrimSuffix(strings.Repeat(`{"name":"VARIABLE"},`, 20_001), ",") + "]"
	const large = "error the pod is too large: the pod has more than 20000 objects and lists; denied if it uses a GPU"
	for name, tt := range map[string]struct{ labels, container, want string }{
		"large":     {container: many, want: large},
		"large-gpu": {container: many + `,"resources":{"limits":{"nvidia.com/gpu":"1"}}`, want: "denied size"},
		"large-init-gpu": {container: `}],"initContainers":[{"name":"b"` + many + `,"resources":{"requests":{"nvidia.com/mig-1g.5gb":"1"}}`,
			want: "denied size"},
		"large-label": {container: many, labels: `"gpuslice.dev/memory":"4Gi"`, want: "denied size"},
		"large-lookalike": {container: many + `,"command":["nvidia.com/gpu"],"resources":{"limits":{"cpu":"1"},"x":{"nvidia.com/gpu":"1"}}`,
			labels: `"x":"gpuslice.dev/memory"`, want: large},
		"costly":     {container: `,"resources":{"limits":{"cpu":"1e9999999"}}`, want: "error "},
		"costly-gpu": {container: `,"resources":{"limits":{"nvidia.com/gpu":"1e9999999"}}`, want: "denied request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := auditorOf(t, &pods{items: []string{podOf(name, tt.labels, tt.container),
				podOf("one", "", `,"resources":{"limits":{"nvidia.com/gpu":"1"}}`)}})
			if err := a.addPods(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := outcomes(a)
			if !strings.HasPrefix(got[name], tt.want) || got["one"] != "unchanged no slice requested" {
				t.Errorf("got %v, want %q", got, tt.want)
			}
		})
	}
}

// TestPanic: a panic while one pod is evaluated is that pod's error.
func TestPanic(t *testing.T) {
	t.Parallel()
	p, _ := policyconfig.Parse("gpuslice-system/p", []byte("apiVersion: gpuslice.dev/v1\n"))
	in := policies.Input{Policy: p, LimitRanges: []*corev1.LimitRange{nil}} // reading it panics
	s := evaluated(in, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "odd", Labels: map[string]string{"gpuslice.dev/memory": "4Gi"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "busybox"}}}})
	if s.Pod.Name != "odd" || !errors.Is(s.Err, errPanic) {
		t.Errorf("%+v", s)
	}
}

// TestPodsThatCannotBeEvaluated: a text that is no pod is an error with its reason, and of ours is a panic alone.
func TestPodsThatCannotBeEvaluated(t *testing.T) {
	t.Parallel()
	a := auditorOf(t, &pods{items: []string{podOf("odd", "", `,"ports":"`+strings.Repeat("x", 5000)+`"`)}})
	if err := a.addPods(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(a.errors) != 1 || errors.Is(a.errors[0], cli.ErrInternal) ||
		!strings.Contains(a.errors[0].Error(), "Pod a/odd: read pod: ") || len(a.errors[0].Error()) > 1000 {
		t.Errorf("%v", a.errors)
	}
	panics := fmt.Errorf("%w: odd\nstack", errPanic)
	if err := failure(panics); !errors.Is(err, cli.ErrInternal) ||
		strings.Contains(err.Error(), "stack") || !strings.Contains(err.Error(), "panic: odd") {
		t.Error(err)
	}
}
