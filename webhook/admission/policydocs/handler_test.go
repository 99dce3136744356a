package policydocs

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/clustertest"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
	"github.com/gpuslice/gpuslice/webhook/admission/watcher"
)

const system = api.SystemNamespace

func newWatcher(t *testing.T, objects ...runtime.Object) *watcher.Watcher {
	t.Helper()
	w, err := watcher.New(watcher.Options{Client: fake.NewClientset(objects...), Namespace: system,
		Metrics: metrics.New("test"), Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// handle sends a request to a handler beside the objects of a cluster, and returns the answer as it is sent.
func handle(t *testing.T, req review.Request, objects ...runtime.Object) *admissionv1.AdmissionResponse {
	t.Helper()
	w := newWatcher(t, objects...)
	defer clustertest.Run(t, w.Run)()
	answer, fault := New(w, system, metrics.New("test")).Handle(t.Context(), req)
	if fault != nil {
		t.Fatal(fault)
	}
	response, err := answer.Response(req.UID)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// written is the request that turns before into after; either may be nil.
func written(t *testing.T, before, after *corev1.ConfigMap) review.Request {
	t.Helper()
	req := review.Request{UID: "u", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Operation: admissionv1.Update}
	raw := func(m *corev1.ConfigMap) runtime.RawExtension {
		req.Namespace, req.Name = m.Namespace, m.Name
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: text}
	}
	switch {
	case before == nil:
		req.Operation, req.Object = admissionv1.Create, raw(after)
	case after == nil:
		req.Operation, req.OldObject = admissionv1.Delete, raw(before)
	default:
		req.Object, req.OldObject = raw(after), raw(before)
	}
	return req
}

func TestHandler(t *testing.T) {
	team := "namespaces: {names: [team-a]}\n"
	a := clustertest.PolicyMap("a", 11,
		team+"quota: {budget: ml, memory: 64Gi}\nstrategies: [time-slicing]\nlimits: {perContainer: {memory: 8Gi}}")
	there := []runtime.Object{
		clustertest.Namespace("team-a", map[string]string{"gpu": "yes"}),
		clustertest.Namespace("team-b", map[string]string{"gpu": "yes", "site": "x"}),
		clustertest.Namespace("team-c", nil), clustertest.Namespace("kube-system", nil),
		clustertest.PolicyMap("default", 10, "mode: \"off\""), a,
		clustertest.PolicyMap("b", 12, "namespaces: {selector: {matchLabels: {gpu: \"yes\"}}}"),
		clustertest.PolicyMap("sharing", 13, "namespaces: {names: [team-s]}\nquota: {budget: ml, memory: 64Gi}"), clustertest.SharedL4(t, "n1"),
	}
	for _, tt := range []struct {
		name          string
		before, after *corev1.ConfigMap
		problems      string
		warnings      string
	}{
		{"a good policy", nil, clustertest.PolicyMap("n", 0, "namespaces: {names: [team-c]}"), "", ""},
		{"every problem at once", nil,
			clustertest.Edited(clustertest.PolicyMap("n", 0, "mode: on\nnamespaces: {names: [team-c]}\nlimits: {perPod: {memory: -1}}\nqota: {}"),
				func(m *corev1.ConfigMap) { m.Data["other"] = "" }),
			`policy gpuslice-system/n is not written, problems: 4
data: there are keys beside policy.yaml, and nothing reads them
data[policy.yaml]: limits.perPod.memory: Invalid value: "-1": "-1" is not an amount of memory; accepted: a positive quantity such as "8Gi" or "9728Mi" (line 4)
data[policy.yaml]: qota: Invalid value: "qota": unknown field; did you mean "quota"? (line 5)
data[policy.yaml]: mode: Unsupported value: "on": supported values: "off", "opt-in", "transparent"`, ""},
		{"no key", nil, clustertest.Edited(clustertest.PolicyMap("n", 0, ""), func(m *corev1.ConfigMap) { m.Data = nil }),
			"policy gpuslice-system/n is not written, problems: 1\ndata: the key policy.yaml is missing", ""},
		{"more than the bound", nil, clustertest.PolicyMap("n", 0, strings.Repeat("#", 1<<16)),
			"policy gpuslice-system/n is not written, problems: 1\ndata[policy.yaml]: policy.yaml: Invalid value: the document has 65564 bytes; accepted: at most 65536", ""},
		{"a second default", nil, clustertest.PolicyMap("n", 0, "mode: opt-in"),
			"policy gpuslice-system/n is not written, problems: 1\npolicies gpuslice-system/default and gpuslice-system/n claim all namespaces that no other governs with equal right; give all but one of them namespaces", ""},
		{"a name that another names", nil, clustertest.PolicyMap("n", 0, team),
			"policy gpuslice-system/n is not written, problems: 1\npolicies gpuslice-system/a and gpuslice-system/n claim namespace \"team-a\" with equal right; name it in one of them only", ""},
		{"a selector that meets another", nil, clustertest.PolicyMap("n", 0, "namespaces: {selector: {matchLabels: {site: x}}}"),
			"policy gpuslice-system/n is not written, problems: 1\npolicies gpuslice-system/b and gpuslice-system/n claim namespace \"team-b\" by its labels with equal right; name it in one of them, or make their selectors exclude each other", ""},
		{"a change to a policy that stays alone", a,
			clustertest.PolicyMap("a", 0, team+"mode: transparent\ndefaultSlice: {memory: 1Gi}"), "", ""},
		{"joining a budget with other limits", nil, clustertest.PolicyMap("n", 0,
			"namespaces: {names: [team-c]}\nquota: {budget: ml, memory: 32Gi}"),
			"policy gpuslice-system/n is not written, problems: 1\npolicies gpuslice-system/a and gpuslice-system/n and gpuslice-system/sharing share the budget \"ml\" and limit it differently " +
				"(quota.memory: 64Gi in gpuslice-system/a, 32Gi in gpuslice-system/n, 64Gi in gpuslice-system/sharing); write the same limits in all of them, until then the strictest hold", ""},
		{"joining a budget with the same limits", nil,
			clustertest.PolicyMap("n", 0, "namespaces: {names: [team-c]}\nquota: {budget: ml, memory: 64Gi}"), "", ""},
		{"the first of several to change their budget", a, clustertest.PolicyMap("a", 0, team+"quota: {budget: ml, memory: 96Gi}"), "",
			"policies gpuslice-system/a and gpuslice-system/sharing share the budget \"ml\" and limit it differently (quota.memory: 96Gi in gpuslice-system/a, 64Gi in gpuslice-system/sharing); write the same limits in all of them, until then the strictest hold"},
		{"legal and doubtful", a,
			clustertest.PolicyMap("a", 0, team+"optOut: true\nstrategies: [time-slicing]\nclasses: {huge: {memory: 100Gi}}"), "",
			"optOut: it means something in mode transparent only; in mode opt-in a pod that requests no slice gets none anyway\nclasses[huge].memory: 100Gi fits no pool that is known, the largest slice there is has 5585Mi"},
		{"a namespace that is not there", nil, clustertest.PolicyMap("n", 0, "namespaces: {names: [team-c, taem-d]}"), "",
			"namespaces.names: there is no namespace taem-d yet"},
		{"a limit and a quota lower than before", a,
			clustertest.PolicyMap("a", 0, team+"quota: {budget: ml, memory: 64Gi, slices: 3}\nstrategies: [time-slicing]\nlimits: {perContainer: {memory: 4Gi}}"), "",
			"policies gpuslice-system/a and gpuslice-system/sharing share the budget \"ml\" and limit it differently (quota.slices: 3 in gpuslice-system/a, none in gpuslice-system/sharing); write the same limits in all of them, until then the strictest hold\n" +
				"limits.perContainer.memory, quota.slices: lower than before. Running pods keep what they have: gpuslice audit --include-enforced lists those that would be denied now, gpuslice quota the usage"},
		{"a tenant's quota lower than before", clustertest.TenantMap("team-a", "quota: {memory: 12Gi}"), clustertest.TenantMap("team-a", "quota: {memory: 6Gi}"), "",
			"quota.memory: lower than before. Running pods keep what they have: gpuslice audit --include-enforced lists those that would be denied now, gpuslice quota the usage"},
		{"a policy without the label", nil, clustertest.Edited(clustertest.PolicyMap("n", 0, team), func(m *corev1.ConfigMap) { m.Labels = nil }), "",
			"ConfigMap gpuslice-system/n: the label gpuslice.dev/policy: \"true\" is missing: nothing is decided by it"},
		{"a deletion", a, nil, "", "policy gpuslice-system/a no longer governs namespace team-a; policy gpuslice-system/b governs there then"},
		{"the label taken away", clustertest.PolicyMap("b", 12, "namespaces: {selector: {matchLabels: {gpu: \"yes\"}}}"),
			clustertest.Edited(clustertest.PolicyMap("b", 12, "namespaces: {selector: {matchLabels: {gpu: \"yes\"}}}"),
				func(m *corev1.ConfigMap) { m.Labels = nil }), "",
			"ConfigMap gpuslice-system/b: the label gpuslice.dev/policy: \"true\" is missing: nothing is decided by it\n" +
				"policy gpuslice-system/b no longer governs namespace team-b; policy gpuslice-system/default governs there then"},
		{"a label of another value", nil,
			clustertest.Edited(clustertest.PolicyMap("n", 0, team), func(m *corev1.ConfigMap) { m.Labels[api.LabelPolicy] = "yes" }), "",
			"ConfigMap gpuslice-system/n: the label gpuslice.dev/policy: \"true\" is missing: nothing is decided by it"},
		{"a policy in a tenant's namespace", nil,
			clustertest.Edited(clustertest.PolicyMap("n", 0, "mode: nonsense"), func(m *corev1.ConfigMap) { m.Namespace = "team-a" }), "",
			"ConfigMap team-a/n: it lies in namespace team-a, and policies govern from namespace gpuslice-system: nothing is decided by it (a tenant's own document is called gpuslice-policy)"},
		{"a finalizer on a broken policy",
			clustertest.Edited(clustertest.PolicyMap("a", 0, "mode: nonsense"), func(m *corev1.ConfigMap) { m.Finalizers = []string{"x/y"} }),
			clustertest.PolicyMap("a", 0, "mode: nonsense"), "", ""},
		{"a broken policy that is being deleted", clustertest.PolicyMap("a", 0, "mode: nonsense"),
			clustertest.Edited(clustertest.PolicyMap("a", 0, "mode: nonsense"),
				func(m *corev1.ConfigMap) { m.DeletionTimestamp, m.Data["x"] = new(metav1.Now()), "" }), "", ""},
		{"a tenant that tightens", nil, clustertest.TenantMap("team-a", "limits: {perContainer: {memory: 4Gi}}\nquota: {slices: 0}"), "", ""},
		{"a tenant that widens", nil, clustertest.TenantMap("team-a",
			"limits: {perContainer: {memory: 9Gi}}\nmode: \"off\"\nguard: {dryRun: true}"),
			`policy team-a/gpuslice-policy is not written, problems: 3
data[policy.yaml]: mode: off is laxer than opt-in (policy gpuslice-system/a; a tenant's own document only tightens)
data[policy.yaml]: limits.perContainer.memory: 9Gi is more than 8Gi (policy gpuslice-system/a; a tenant's own document only tightens)
data[policy.yaml]: guard: not for a tenant's own document (policy gpuslice-system/a; a tenant's own document only tightens)`, ""},
		{"a tenant's mistake", nil, clustertest.TenantMap("team-a", "mode: nonsense"),
			"policy team-a/gpuslice-policy is not written, problems: 1\ndata[policy.yaml]: mode: Unsupported value: \"nonsense\": supported values: \"off\", \"opt-in\", \"transparent\"", ""},
		{"a tenant's document that goes", clustertest.TenantMap("team-a", "mode: transparent"), nil, "",
			"namespace team-a loses its own limits and quota; policy gpuslice-system/a alone applies there"},
		{"a tenant's name in the system namespace", nil, clustertest.TenantMap(system, ""), "",
			"ConfigMap gpuslice-system/gpuslice-policy: the label gpuslice.dev/policy: \"true\" is missing: nothing is decided by it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := handle(t, written(t, tt.before, tt.after), there...)
				denied := ""
				if !got.Allowed {
					denied = got.Result.Message
					details := got.Result.Details
					if got.Result.Code != http.StatusUnprocessableEntity || details.Kind != "ConfigMap" || details.Name == "" ||
						len(details.Causes) == 0 || !strings.HasPrefix(details.Causes[0].Field, "data") {
						t.Errorf("code %d, details %v", got.Result.Code, details)
					}
				}
				if diff := cmp.Diff(tt.problems, denied); diff != "" {
					t.Errorf("denial (-want +got)\n%s", diff)
				}
				if diff := cmp.Diff(strings.Join(review.Warnings([]string{strings.ReplaceAll(tt.warnings, "\n", " ")}), " "),
					strings.Join(got.Warnings, " ")); diff != "" {
					t.Errorf("warnings (-want +got)\n%s", diff)
				}
			})
		})
	}
}

func TestHandlerUngoverned(t *testing.T) {
	t.Run("a tenant's document without a policy gets a warning", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			got := handle(t, written(t, nil, clustertest.TenantMap("team-a", "mode: transparent")), clustertest.Namespace("team-a", nil))
			if want := "no gpuslice policy governs namespace team-a"; !got.Allowed || !strings.HasPrefix(strings.Join(got.Warnings, ""), want) {
				t.Errorf("%+v", got)
			}
		})
	})
}

func TestHandlerFaults(t *testing.T) {
	t.Run("requests that cannot be answered are faults", func(t *testing.T) {
		t.Parallel()
		handler := New(newWatcher(t), system, metrics.New("test"))
		pod := written(t, nil, clustertest.PolicyMap("a", 0, ""))
		pod.Kind.Kind = "Pod"
		empty := written(t, nil, clustertest.PolicyMap("a", 0, ""))
		empty.Object.Raw = nil
		for name, tt := range map[string]struct {
			req  review.Request
			code int
		}{
			"a pod":                     {pod, http.StatusBadRequest},
			"no object":                 {empty, http.StatusBadRequest},
			"before anything was read ": {written(t, nil, clustertest.PolicyMap("a", 0, "")), http.StatusServiceUnavailable},
		} {
			if got, fault := handler.Handle(t.Context(), tt.req); fault == nil || fault.Code != tt.code {
				t.Errorf("%s: %+v, %v", name, got, fault)
			}
		}
	})
}
