package pods

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/scenarios"
	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// question is the dry-run of a pod that asks for a report.
func question(asked string) review.Request {
	req := podReview("team-a", `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"q-","annotations":{"gpuslice.dev/report":"`+asked+
		`"}},"spec":{"containers":[{"name":"a","image":"a"}]}}`)
	dry := true
	req.DryRun = &dry
	return req
}

// underQuota is a chain under a policy with this quota, whose ledger holds 12Gi and reserves 2Gi.
func underQuota(t *testing.T, policy string) *chain {
	t.Helper()
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed")
	if err != nil {
		t.Fatal(err)
	}
	c := newChain(scenarioSource(scenarios.Scenario{Policy: []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\n" + policy),
		Nodes: nodes, Namespace: api.Namespace{Name: "team-a"}, Pod: []byte(`{}`)}))
	holding := func(memory api.MiB) quota.Holding {
		return quota.Holding{Namespace: "team-a", Charge: quota.Charge{Memory: memory, Slices: 1}}
	}
	c.room.state = ledger.State{Namespaces: []string{"team-a"}, Base: []quota.Holding{holding(12 << 10)},
		Reservations: []ledger.Reservation{{PodUID: "1", Name: "p", Holding: holding(2 << 10)}}}
	return c
}

func TestQuotaReport(t *testing.T) {
	t.Run("is a denial with the figures", func(t *testing.T) {
		c := underQuota(t, "quota: {memory: 64Gi}\n")
		if r := handle(t, c.mutating, question("quota")); !r.Allowed || len(r.Patch) > 0 {
			t.Errorf("the mutating webhook touches a question: %+v", r)
		}
		r := handle(t, c.validating, question("quota"))
		if r.Allowed || r.Result.Code != http.StatusForbidden || r.Result.Message != "quota team-a: memory 12Gi of 64Gi used, 2Gi reserved" {
			t.Fatalf("%+v", r.Result)
		}
		var report budgets.Report
		cause := r.Result.Details.Causes[0]
		if err := json.Unmarshal([]byte(cause.Message), &report); err != nil || cause.Type != budgets.CauseOf(budgets.ReportQuota) {
			t.Fatalf("%v: %+v", err, cause)
		}
		want := quota.Figure{Quota: "team-a", Dimension: "memory", Limit: 64 << 30, Used: 12 << 30, Reserved: 2 << 30}
		if report.Budget != "namespace/team-a" || !report.Counted || !slices.Equal(report.Figures, []quota.Figure{want}) {
			t.Errorf("%+v", report)
		}
		if len(c.room.asked) > 0 {
			t.Errorf("a question reserves: %+v", c.room.asked)
		}
	})
}

func TestQuotaReportUnavailable(t *testing.T) {
	for name, tt := range map[string]struct {
		policy, asked, want string
		code                int32
		change              func(*chain)
	}{
		"no such report": {"quota: {memory: 1Gi}\n", "pods",
			`there is no report "pods"; write "quota" or "policy"`, http.StatusForbidden, nil},
		"no quota": {"", "quota", `sets namespace "team-a" no quota`, http.StatusForbidden, nil},
		"off":      {"mode: \"off\"\n", "quota", `no gpuslice policy governs namespace "team-a"`, http.StatusForbidden, nil},
		"not counted": {"quota: {memory: 1Gi}\n", "quota", "not counted yet", http.StatusForbidden,
			func(c *chain) { c.room.state = ledger.State{} }},
		"not readable": {"quota: {memory: 1Gi}\n", "quota", "try again", http.StatusTooManyRequests,
			func(c *chain) { c.room.err = errors.New("no answer") }},
	} {
		t.Run(name, func(t *testing.T) {
			c := underQuota(t, tt.policy)
			if tt.change != nil {
				tt.change(c)
			}
			r := handle(t, c.validating, question(tt.asked))
			if r.Allowed || r.Result.Code != tt.code || !strings.Contains(r.Result.Message, tt.want) {
				t.Errorf("%+v", r.Result)
			}
		})
	}
}

// TestPolicyReport: a tenant who may create pods learns what governs them, and nothing of other namespaces or of the nodes.
func TestPolicyReport(t *testing.T) {
	c := underQuota(t, "quota: {memory: 64Gi}\nnamespaces: {names: [team-a, secret-project]}\n")
	r := handle(t, c.validating, question("policy"))
	if r.Allowed || r.Result.Code != http.StatusForbidden || !strings.Contains(r.Result.Message, `governs namespace "team-a"`) {
		t.Fatalf("%+v", r.Result)
	}
	cause := r.Result.Details.Causes[0]
	report, err := budgets.ReadPolicyReport([]byte(cause.Message))
	if err != nil || cause.Type != budgets.CauseOf(budgets.ReportPolicy) {
		t.Fatalf("%v: %+v", err, cause)
	}
	if report.Policy == "" || report.Document == nil || !report.Document.Allows("time-slicing") ||
		strings.Contains(cause.Message, "secret-project") {
		t.Errorf("%s", cause.Message)
	}
	if len(c.room.asked) > 0 {
		t.Errorf("a question reserves: %+v", c.room.asked)
	}
	if r := handle(t, underQuota(t, "mode: \"off\"\n").validating, question("policy")); r.Allowed ||
		!strings.Contains(r.Result.Message, "governs namespace") {
		t.Errorf("%+v", r.Result)
	}
}

func TestDryRunRemaining(t *testing.T) {
	const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"gpuslice.dev/memory":"1Gi"}},"spec":{"containers":[{"name":"a","image":"a","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`
	for name, tt := range map[string]struct {
		policy string
		dry    bool
		want   []string
	}{
		"a dry-run":        {"", true, []string{"quota team-a: memory 12Gi of 64Gi used, 2Gi reserved"}},
		"a create":         {"", false, nil},
		"a dry-run, audit": {"enforcementMode: audit\n", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := underQuota(t, tt.policy+"quota: {memory: 64Gi, classes: {other: {slices: 1}}}\n")
			mutated := patched(t, pod, handle(t, c.mutating, podReview("team-a", pod)))
			req := podReview("team-a", mutated)
			req.DryRun = &tt.dry
			r := handle(t, c.validating, req)
			if !r.Allowed || !slices.Equal(r.Warnings, tt.want) {
				t.Errorf("%t %v %q", r.Allowed, r.Result, r.Warnings)
			}
		})
	}
}
