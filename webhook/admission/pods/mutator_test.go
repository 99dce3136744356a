package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/server"
)

// fixed is a Source that says the same of every namespace.
type fixed struct {
	in  policies.Input
	err error
}

func (f fixed) Input(_ context.Context, namespace string) (policies.Input, error) {
	in := f.in
	in.Namespace.Name = namespace
	return in, f.err
}

// ClaimSpecs implements Source.
func (f fixed) ClaimSpecs(context.Context, string, *corev1.Pod) map[string]*resourcev1.ResourceClaimSpec {
	return f.in.Claims
}

// governed is a namespace under a policy document, beside one pool of shared L4 cards.
func governed(t testing.TB, document string) fixed {
	t.Helper()
	p, problems := config.Parse("gpuslice-system/test", []byte("apiVersion: gpuslice.dev/v1\n"+document))
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	return fixed{in: policies.Input{Policy: p, Pools: []pools.Pool{{
		Name: "l4", Site: "l4", Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing", DeviceMemory: 23034, Reserve: 691, Replicas: 4,
	}}}}
}

// asking is a pod that requests a slice of that much memory. It holds a field that no build knows.
func asking(memory string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"train-","namespace":"team-a","labels":{"gpuslice.dev/memory":%q}},`+
		`"spec":{"fromTheFuture":{"a":1},"containers":[{"name":"trainer","image":"pytorch/pytorch:2.4.0","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`, memory)
}

// call is a review request about a pod.
type call struct {
	operation   admissionv1.Operation
	object, old string
	namespace   string
	subresource string
	kind        string
}

// sample is a review as the API server sends it, of a pod without anything special.
const sample = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{` +
	`"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","kind":{"group":"","version":"v1","kind":"Pod"},` +
	`"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"team-a","operation":"CREATE",` +
	`"userInfo":{"username":"jane"},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"train-",` +
	`"namespace":"team-a"},"spec":{"containers":[{"name":"trainer","image":"pytorch"}]}},"oldObject":null,"dryRun":false}}`

// post sends a body as the API server does.
func post(handler http.Handler, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, server.PathMutatePods+"?timeout=3s", body)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// endpoint serves the mutating handler, which does not sign.
func endpoint(source Source, m *metrics.Metrics) http.Handler {
	handler := NewMutator(Options{Source: source, Metrics: m, Namespace: api.SystemNamespace}, nil)
	return server.NewEndpoint("pods", handler, server.EndpointOptions{Limits: server.NewLimits(), Metrics: m, Log: logr.Discard()})
}

// ask sends a call to the pods handler over HTTP and returns the answer, or the status where there is none.
func ask(t *testing.T, source Source, counters *metrics.Metrics, c call) (*admissionv1.AdmissionResponse, int) {
	t.Helper()
	body := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "u", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Namespace: "team-a", SubResource: c.subresource, Operation: c.operation,
	}}
	body.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	if c.namespace != "" {
		body.Request.Namespace = c.namespace
	}
	if c.kind != "" {
		body.Request.Kind.Kind = c.kind
	}
	if c.operation == "" {
		body.Request.Operation = admissionv1.Create
	}
	if c.object != "" {
		body.Request.Object = runtime.RawExtension{Raw: []byte(c.object)}
	}
	if c.old != "" {
		body.Request.OldObject = runtime.RawExtension{Raw: []byte(c.old)}
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	w := post(endpoint(source, counters), strings.NewReader(string(text)))
	if w.Code != http.StatusOK {
		return nil, w.Code
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Response, w.Code
}

// scrape returns the metrics as text.
func scrape(counters *metrics.Metrics) string {
	w := httptest.NewRecorder()
	counters.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, server.PathMetrics, nil))
	return w.Body.String()
}

// patched applies an answer's patch as the API server does.
func patched(t *testing.T, object string, response *admissionv1.AdmissionResponse) string {
	t.Helper()
	if response.Patch == nil {
		return object
	}
	if response.PatchType == nil || *response.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatal("the patch does not say what it is")
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply([]byte(object))
	if err != nil {
		t.Fatalf("%v\n%s", err, response.Patch)
	}
	return string(out)
}

func TestMutatorCreate(t *testing.T) {
	t.Run("a pod that requests a slice gets one", func(t *testing.T) {
		t.Parallel()
		counters := metrics.New("test")
		source := governed(t, "strategies: [time-slicing]")
		response, code := ask(t, source, counters, call{object: asking("4Gi")})
		if code != http.StatusOK || !response.Allowed || len(response.Patch) == 0 {
			t.Fatalf("answered %d %+v", code, response)
		}
		out := patched(t, asking("4Gi"), response)
		for _, text := range []string{`"nvidia.com/gpu.shared":"1"`, `"gpuslice.dev/promise"`,
			`"gpuslice.dev/planned"`, `"fromTheFuture":{"a":1}`} {
			if !strings.Contains(out, text) {
				t.Errorf("the pod lacks %s:\n%s", text, out)
			}
		}
		outcome := string(policies.Mutated)
		want := map[string]string{"outcome": outcome, "ifEnforced": outcome, "reason": "sliced",
			"policy": "gpuslice-system/test", "mode": "enforce"}
		if diff := cmp.Diff(want, response.AuditAnnotations); diff != "" {
			t.Errorf("audit (-want +got)\n%s", diff)
		}
		if line := fmt.Sprintf(`gpuslice_decisions_total{handler="pods-create",if_enforced=%q,mode="enforce",outcome=%[1]q,reason="sliced"} 1`,
			outcome); !strings.Contains(scrape(counters), line) {
			t.Errorf("not counted:\n%s", scrape(counters))
		}
		again, _ := ask(t, source, counters, call{object: out})
		if !again.Allowed || patched(t, out, again) != out {
			t.Errorf("a second review changes the pod: %s", again.Patch)
		}
	})
}

func TestMutatorModes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy     string
		object     string
		allowed    bool
		code       int32
		warnings   bool
		ifEnforced policies.Outcome
	}{
		"enforce denies with what to write": {"limits: {perContainer: {memory: 8Gi}}",
			asking("9Gi"), false, 403, false, policies.Denied},
		"warn lets it pass with a warning": {"enforcementMode: warn\nlimits: {perContainer: {memory: 8Gi}}",
			asking("9Gi"), true, 200, true, policies.Denied},
		"audit lets it pass and says nothing": {"enforcementMode: audit\nlimits: {perContainer: {memory: 8Gi}}",
			asking("9Gi"), true, 200, false, policies.Denied},
		"audit changes nothing either":                      {"enforcementMode: audit", asking("4Gi"), true, 200, false, policies.Mutated},
		"enforce denies what costs seconds to parse":        {"", costly, false, 422, false, policies.Denied},
		"warn lets what costs seconds pass with a warning":  {"enforcementMode: warn", costly, true, 200, true, policies.Denied},
		"audit lets what costs seconds pass":                {"enforcementMode: audit", costly, true, 200, false, policies.Denied},
		"a policy that is off leaves even that alone":       {"mode: \"off\"", costly, true, 200, false, policies.Unchanged},
		"a policy that is off leaves a pod that asks alone": {"mode: \"off\"", asking("4Gi"), true, 200, true, policies.Unchanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, code := ask(t, governed(t, "strategies: [time-slicing]\n"+tt.policy), metrics.New("test"), call{object: tt.object})
			if code != http.StatusOK {
				t.Fatalf("answered %d", code)
			}
			if response.Allowed != tt.allowed || response.Result.Code != tt.code ||
				len(response.Warnings) > 0 != tt.warnings || len(response.Patch) > 0 {
				t.Errorf("allowed %v code %d warnings %q patch %s", response.Allowed, response.Result.Code, response.Warnings, response.Patch)
			}
			if got := response.AuditAnnotations["ifEnforced"]; got != string(tt.ifEnforced) {
				t.Errorf("under enforce it is %q, want %q", got, tt.ifEnforced)
			}
			if !tt.allowed && (response.Result.Message == "" || len(response.Result.Details.Causes) == 0) {
				t.Errorf("the denial has no message: %+v", response.Result)
			}
		})
	}
}

// costly is a pod with a quantity that a general parser needs seconds for.
const costly = `{"metadata":{"labels":{"gpuslice.dev/memory":"4Gi"}},"spec":{"containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":"1e10000000"}}}]}}`

func TestMutatorScope(t *testing.T) {
	t.Parallel()
	all := governed(t, "mode: transparent\nstrategies: [time-slicing]\ndefaultSlice: {memory: 4Gi}")
	for name, tt := range map[string]struct {
		source Source
		call   call
		code   int
	}{
		"pods of our own namespace": {all, call{object: asking("4Gi"), namespace: api.SystemNamespace}, 200},
		"sub-resources":             {all, call{object: asking("4Gi"), subresource: "status"}, 200},
		"deletions":                 {all, call{old: asking("4Gi"), operation: admissionv1.Delete}, 200},
		"connections":               {all, call{object: "{}", operation: admissionv1.Connect}, 200},
		"pods without a GPU":        {all, call{object: `{"spec":{"containers":[{"name":"a"}]}}`}, 200},
		"mirror pods": {all,
			call{object: strings.Replace(asking("4Gi"), `"labels"`, `"annotations":{"kubernetes.io/config.mirror":"x"},"labels"`, 1)}, 200},
		"pods where no policy governs":        {fixed{}, call{object: asking("4Gi")}, 200},
		"costly pods where no policy governs": {fixed{}, call{object: costly}, 200},
		"another kind is a mistake of ours":   {all, call{object: "{}", kind: "Job"}, 400},
		"no object":                           {all, call{}, 400},
		"null":                                {all, call{object: "null"}, 400},
		"a list for a pod":                    {all, call{object: "[1]"}, 400},
		"a number for its labels":             {all, call{object: `{"metadata":{"labels":1}}`}, 400},
		"an update without the old object":    {all, call{object: asking("4Gi"), operation: admissionv1.Update}, 400},
		"a namespace that cannot be read":     {fixed{err: errors.New("away")}, call{object: asking("4Gi")}, 503},
		"an update of what never was ours": {fixed{err: errors.New("away")},
			call{object: asking("4Gi"), old: asking("4Gi"), operation: admissionv1.Update}, 200},
		"an update to what no update can come from": {all, call{object: "[]", old: asking("4Gi"), operation: admissionv1.Update}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, code := ask(t, tt.source, metrics.New("test"), tt.call)
			if code != tt.code {
				t.Fatalf("answered %d, want %d", code, tt.code)
			}
			if code == 200 && (!response.Allowed || len(response.Patch) > 0) {
				t.Errorf("answered %+v", response)
			}
		})
	}
}

func TestMutatorBrokenPolicy(t *testing.T) {
	t.Run("is never \"no limits\"", func(t *testing.T) {
		t.Parallel()
		broken := fixed{in: policies.Input{PolicyError: errors.New("policy x cannot be used: spec.mode: nonsense")}}
		response, _ := ask(t, broken, metrics.New("test"), call{object: asking("4Gi")})
		if response.Allowed || !strings.Contains(response.Result.Message, "spec.mode: nonsense") {
			t.Errorf("answered %+v", response.Result)
		}
		if response, _ := ask(t, broken, metrics.New("test"), call{object: costly}); response.Allowed {
			t.Error("a costly pod passes a broken policy")
		}
		if response, _ := ask(t, broken, metrics.New("test"), call{object: `{"spec":{"containers":[{"name":"a"}]}}`}); !response.Allowed {
			t.Error("a pod without a GPU is denied")
		}
	})
}
