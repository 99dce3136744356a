package pods

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/scenarios"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// fixedKeys are keys that never change.
type fixedKeys struct{ promise.Keys }

func (k fixedKeys) PromiseOf(_ context.Context, pod *corev1.Pod) *promise.Promise {
	return k.Keys.PromiseOf(pod)
}

func testKeys() promise.Keys { return promise.NewKeys([]byte("a key of the tests, 32 bytes long")) }

// room answers every request alike, and remembers them.
type room struct {
	state  ledger.State
	err    error
	answer ledger.Answer
	asked  []ledger.Request
}

// Read implements Reserver.
func (r *room) Read(context.Context, string) (ledger.State, error) { return r.state, r.err }

func (r *room) Reserve(_ context.Context, q ledger.Request) ledger.Answer {
	r.asked = append(r.asked, q)
	return r.answer
}

// oneBudget has the policy's quota for every namespace.
type oneBudget struct{}

func (oneBudget) For(in policies.Input) budgets.NamespaceQuota {
	return budgets.NamespaceQuota{Budget: ledger.Budget{Key: "namespace/" + in.Namespace.Name, Namespaces: []string{in.Namespace.Name}},
		Limits: in.Policy.QuotaFor(in.Namespace.Name), NamespaceUID: "ns-uid"}
}

// chain is both webhooks of one replica, asked one after the other as the API server does.
type chain struct {
	mutating   *Mutator
	validating *Verifier
	room       *room
}

func newChain(source Source) *chain {
	options := Options{Source: source, Metrics: metrics.New("test"), Namespace: api.SystemNamespace}
	c := &chain{room: &room{answer: ledger.Answer{Decision: ledger.Admitted}}}
	c.mutating = NewMutator(options, testKeys)
	c.validating = NewVerifier(options, fixedKeys{testKeys()},
		&budgets.Checker{Reserver: c.room, Budgets: oneBudget{}, Metrics: options.Metrics})
	return c
}

// create sends a pod through both; between, if there is one, is what another webhook does to it.
func (c *chain) create(t *testing.T, namespace, object string, between func(*corev1.Pod)) *admissionv1.AdmissionResponse {
	t.Helper()
	response := handle(t, c.mutating, podReview(namespace, object))
	if !response.Allowed {
		return response
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(patched(t, object, response)), pod); err != nil {
		t.Fatal(err)
	}
	pod.UID, pod.Name = "pod-uid", "train-abc"
	if between != nil {
		between(pod)
	}
	final, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return handle(t, c.validating, podReview(namespace, string(final)))
}

func podReview(namespace, object string) review.Request {
	return review.Request{
		UID: "u", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: namespace, Operation: admissionv1.Create,
		Object: runtime.RawExtension{Raw: []byte(object)},
	}
}

// handle is the answer of a handler as it is sent; a fault looks like a response that does not allow.
func handle(t *testing.T, handler review.Handler, req review.Request) *admissionv1.AdmissionResponse {
	t.Helper()
	answer, fault := handler.Handle(t.Context(), req)
	if fault != nil {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: int32(fault.Code), Message: fault.Message}}
	}
	response, err := answer.Response(req.UID)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func TestScenariosBothWebhooks(t *testing.T) {
	t.Parallel()
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Old != nil {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			c := newChain(scenarioSource(s))
			outcome, _ := verdict(s.Want["verdict"])
			response := c.create(t, s.Namespace.Name, string(s.Pod), nil)
			if denied := strings.HasPrefix(outcome, string(policies.Denied)); response.Allowed == denied {
				t.Errorf("%s: allowed %t: %+v", outcome, response.Allowed, response.Result)
			}
		})
	}
}

func TestVerifierCreate(t *testing.T) {
	abuse.Report(t, abuse.Attempt{Threat: "A12", Attack: "another webhook changes the pod after gpuslice", Outcome: abuse.Denied,
		Words: "the slice was changed after it was given"})
	t.Parallel()
	for name, c := range map[string]struct {
		document string
		between  func(*corev1.Pod)
		denied   string
	}{
		"nothing": {"", func(*corev1.Pod) {}, ""},
		"a container that has no GPU": {"", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy", Image: "mesh"})
		}, ""},
		"the limit of a tenant": {"", func(p *corev1.Pod) { p.Spec.Containers[0].Env = nil }, "the slice was changed after it was given"},
		"the promise":           {"", func(p *corev1.Pod) { delete(p.Annotations, api.AnnotationPromise) }, "was not given one"},
		"a promise by another hand": {"", func(p *corev1.Pod) {
			p.Annotations[api.AnnotationPromise] = promise.Unsigned(p.Annotations[api.AnnotationPromise])
		}, "was not given one"},
		"the promise, in warn": {"enforcementMode: warn", func(p *corev1.Pod) { delete(p.Annotations, api.AnnotationPromise) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response := newChain(governed(t, "strategies: [time-slicing]\n"+c.document)).create(t, "team-a", asking("4Gi"), c.between)
			if response.Allowed != (c.denied == "") || !strings.Contains(response.Result.Message, c.denied) {
				t.Errorf("allowed %t: %s", response.Allowed, response.Result.Message)
			}
			if name == "the promise, in warn" && len(response.Warnings) == 0 {
				t.Error("nobody is warned")
			}
		})
	}
}

func TestVerifierQuota(t *testing.T) {
	t.Run("reserves what was promised", func(t *testing.T) {
		t.Parallel()
		c := newChain(governed(t, "strategies: [time-slicing]\nquota: {memory: 8Gi}"))
		if response := c.create(t, "team-a", asking("4Gi"), nil); !response.Allowed {
			t.Fatal(response.Result.Message)
		}
		got := c.room.asked[0]
		if got.Holding.Charge != (quota.Charge{Memory: 4096, Slices: 1, Devices: 7_207_200}) || got.PodUID != "pod-uid" ||
			got.Name != "train-abc" || got.NamespaceUID != "ns-uid" || got.DryRun {
			t.Errorf("asked %+v", got)
		}
		c.room.answer = ledger.Answer{Decision: ledger.Exceeded,
			Excess: []quota.Excess{{Quota: "team-a", Dimension: "memory", Requested: "4Gi", Used: "8Gi", Limited: "8Gi", Left: "0Mi"}}}
		response := c.create(t, "team-a", asking("4Gi"), nil)
		const want = "exceeded quota: team-a, requested: memory=4Gi, used: memory=8Gi, limited: memory=8Gi (memory left: 0Mi)"
		if response.Allowed || response.Result.Code != http.StatusForbidden || response.Result.Message != want {
			t.Errorf("allowed %t, %d: %s", response.Allowed, response.Result.Code, response.Result.Message)
		}
	})
	t.Run("a whole device is counted whole", func(t *testing.T) {
		t.Parallel()
		source := governed(t, "quota: {memory: 8Gi}")
		source.in.Pools = append(source.in.Pools, pools.Pool{Name: "a100", Resource: api.ResourceGPU, DeviceMemory: 81920})
		c := newChain(source)
		object := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"whole"},"spec":{"containers":[{"name":"a","image":"x","resources":{"limits":{"nvidia.com/gpu":"2"}}}]}}`
		if response := c.create(t, "team-a", object, nil); !response.Allowed {
			t.Fatal(response.Result.Message)
		}
		if got := c.room.asked[0].Holding.Charge; got != (quota.Charge{Memory: 163840, GPUs: 2, Devices: 2 * 28_828_800}) {
			t.Errorf("charged %+v", got)
		}
	})
}

func TestVerifierRetryAfter(t *testing.T) {
	// a controller's worker that sleeps in its client serves nobody meanwhile.
	t.Run("only a short wait is left to clients", func(t *testing.T) {
		t.Parallel()
		for after, seconds := range map[time.Duration]int32{0: 1, 300 * time.Millisecond: 1,
			time.Second: 1, 1200 * time.Millisecond: 0, time.Minute: 0} {
			c := newChain(governed(t, "strategies: [time-slicing]\nquota: {memory: 8Gi}"))
			c.room.answer = ledger.Answer{Decision: ledger.Busy, RetryAfter: after, Reason: "the ledger is slow"}
			response := c.create(t, "team-a", asking("4Gi"), nil)
			var told int32
			if response.Result.Details != nil {
				told = response.Result.Details.RetryAfterSeconds
			}
			if response.Allowed || response.Result.Code != http.StatusTooManyRequests || told != seconds {
				t.Errorf("%s: allowed %t, %d, asked to wait %d s, want %d", after, response.Allowed, response.Result.Code, told, seconds)
			}
		}
	})
}

func TestVerifierQuotaModes(t *testing.T) {
	t.Run("enforcementMode decides what a full quota means", func(t *testing.T) {
		t.Parallel()
		full := ledger.Answer{Decision: ledger.Exceeded,
			Excess: []quota.Excess{{Quota: "team-a", Dimension: "memory", Requested: "4Gi", Used: "8Gi", Limited: "8Gi", Left: "0Mi"}}}
		for mode, answers := range map[string]struct {
			allowed  bool
			warnings int
		}{"enforce": {false, 0}, "warn": {true, 1}, "audit": {true, 0}} {
			for what, answer := range map[string]ledger.Answer{"full": full, "busy": {Decision: ledger.Busy, Reason: "slow"}} {
				c := newChain(governed(t, "strategies: [time-slicing]\nquota: {memory: 8Gi}\nenforcementMode: "+mode))
				c.room.answer = answer
				response := c.create(t, "team-a", asking("4Gi"), nil)
				if response.Allowed != answers.allowed || what == "full" && len(response.Warnings) != answers.warnings {
					t.Errorf("%s, %s: allowed %t, warnings %q", mode, what, response.Allowed, response.Warnings)
				}
				if len(c.room.asked) != 1 || c.room.asked[0].Holding.Charge.Memory != 4096 {
					t.Errorf("%s: asked %+v", mode, c.room.asked)
				}
			}
		}
	})
}

func TestVerifierUpdate(t *testing.T) {
	t.Run("what is gpuslice's stays on a live pod", func(t *testing.T) {
		t.Parallel()
		c := newChain(governed(t, "strategies: [time-slicing]"))
		request := podReview("team-a", asking("4Gi"))
		live := []byte(patched(t, asking("4Gi"), handle(t, c.mutating, request)))
		change := func(f func(*corev1.Pod)) []byte {
			pod := &corev1.Pod{}
			if err := json.Unmarshal(live, pod); err != nil {
				t.Fatal(err)
			}
			f(pod)
			b, err := json.Marshal(pod)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		got := map[string]bool{}
		for what, f := range map[string]func(*corev1.Pod){
			"image of the tenant": func(p *corev1.Pod) { p.Spec.Containers[0].Image = "next" },
			"finalizer":           func(p *corev1.Pod) { p.Finalizers = []string{"a/b"} },
			"our annotation":      func(p *corev1.Pod) { delete(p.Annotations, api.AnnotationPromise) },
			"our label":           func(p *corev1.Pod) { p.Labels[api.LabelMemory] = "1Gi" },
			"our label, while it is deleted": func(p *corev1.Pod) {
				p.Labels[api.LabelMemory], p.DeletionTimestamp = "1Gi", &metav1.Time{Time: time.Unix(1, 0)}
			},
		} {
			request.Operation, request.OldObject.Raw, request.Object.Raw = admissionv1.Update, live, change(f)
			got[what] = handle(t, c.validating, request).Allowed
		}
		want := map[string]bool{"image of the tenant": true, "finalizer": true, "our annotation": false,
			"our label": false, "our label, while it is deleted": true}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("allowed (-want +got)\n%s", diff)
		}
		request.OldObject.Raw = change(func(p *corev1.Pod) { delete(p.Annotations, api.AnnotationPromise) })
		request.Object.Raw = live
		if response := handle(t, c.validating, request); response.Allowed {
			t.Error("a live pod is given a promise that it was not made with")
		}
	})
}

func TestOversized(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		operation   admissionv1.Operation
		subresource string
		user        string
		denied      bool
	}{
		"a new pod":                      {admissionv1.Create, "", "a", true},
		"a change of what is gpuslice's": {admissionv1.Update, "", "a", true},
		"a debugger":                     {admissionv1.Update, "ephemeralcontainers", "a", true},
		"what is observed, by gpuslice":  {admissionv1.Update, "", "system:serviceaccount:" + api.SystemNamespace + ":" + ServiceAccount, false},
	} {
		c := newChain(governed(t, ""))
		request := podReview("team-a", "")
		request.Operation, request.SubResource, request.UserInfo.Username = tt.operation, tt.subresource, tt.user
		answer, fault := c.validating.HandleOversized(t.Context(), request)
		if fault != nil {
			t.Fatal(fault)
		}
		response, err := answer.Response("u")
		if err != nil || response.Allowed == tt.denied {
			t.Errorf("%s: %+v, %v", name, response, err)
		}
	}
}
