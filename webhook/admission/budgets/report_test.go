package budgets

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func TestNewReport(t *testing.T) {
	t.Run("is bounded", func(t *testing.T) {
		var q quota.Quota
		one := int64(1)
		for range maxFigures + 7 {
			q.Limits = append(q.Limits, quota.Limit{Name: "a", Limits: quota.Limits{Slices: &one}})
		}
		r := NewReport(policies.Input{Policy: &config.Policy{}}, ledger.Budget{}, q, ledger.State{})
		if len(r.Figures) != maxFigures || r.More != 7 {
			t.Errorf("%d figures, %d more", len(r.Figures), r.More)
		}
	})
}

// TestPolicyReportIsReadAsItIsWritten: the client reads the document that the webhook decides by, and what it says of other
// namespaces and of nodes is not in it.
func TestPolicyReportIsReadAsItIsWritten(t *testing.T) {
	p, problems := config.Parse("p", []byte(`apiVersion: gpuslice.dev/v1
namespaces: {names: [team-a, secret-project], selector: {matchLabels: {secret: "1"}}}
mode: transparent
strategies: [mig, mps, time-slicing, exclusive]
defaultSlice: {fraction: 1/4, compute: 25}
classes: {small: {memory: 4Gi, memoryLimit: 6Gi}}
limits: {perContainer: {memory: 16Gi, devices: 0.5}, perPod: {slices: 4}, maxLimitRequestRatio: 2}
quota: {memory: 64Gi, classes: {small: {slices: 3}}}
minimumEnforcement: {tier: guard}
frameworks: {pytorch: {shim: "on"}}
contextAllowance: 600Mi
env: [{name: A, value: "{{memoryMiB}}"}]
guard: {grace: 3s, act: pressure}
idle: {report: 1h}
pod: {priorityClassName: low, tolerations: [{key: gpu, operator: Exists}]}
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	own, problems := config.ParseTenant("own", []byte("apiVersion: gpuslice.dev/v1\nquota: {slices: 3}\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p.TenantQuota = &own.Quota
	text, err := json.Marshal(newPolicyReport(policies.Input{Namespace: api.Namespace{Name: "team-a"}, Policy: p}))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") {
		t.Errorf("%s", text)
	}
	read, err := ReadPolicyReport(text)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(read.Document); err != nil || !strings.Contains(string(text), string(again)) {
		t.Errorf("%v\n%s\n%s", err, text, again)
	}
	for range 20 { // in whichever order the two are read
		for part, found := range map[string]func(PolicyReport) bool{
			"document": func(r PolicyReport) bool { return r.Document != nil && r.Tenant == nil },
			"tenant":   func(r PolicyReport) bool { return r.Document == nil && r.Tenant != nil },
		} {
			r, err := ReadPolicyReport([]byte(`{"namespace":"team-a","policy":"p","` + part + `":{"apiVersion":"gpuslice.dev/v1"}}`))
			if err != nil || !found(r) {
				t.Fatalf("the %s alone: %+v, %v", part, r, err)
			}
		}
	}
	if slices := read.Tenant.Quota.Slices; slices == nil || *slices != 3 {
		t.Errorf("%s", text)
	}
	if none := newPolicyReport(policies.Input{}); none.Document != nil || !strings.Contains(none.String(), "no gpuslice policy") {
		t.Errorf("%+v", none)
	}
}
