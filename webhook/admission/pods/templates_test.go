package pods

import (
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"serve"},"spec":{"template":{"metadata":{"labels":{"app":"serve"}},` +
	`"spec":{"containers":[{"name":"server","resources":{"limits":{"nvidia.com/gpu":"500m"}}}]}}}}`

// labelled is the Deployment with a whole GPU and a label of ours.
func labelled(name string) string {
	return strings.NewReplacer("500m", "1", `"app":"serve"`, `"gpuslice.dev/`+name+`":"8Gi"`).Replace(deployment)
}

func TestFractionInTemplate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source  Source
		object  string
		edit    func(*admissionv1.AdmissionRequest)
		allowed bool
		code    int32
		warned  bool
		says    string // a warning
		patched bool
		audited string // the audit log's outcome under enforce
	}{
		"check denies": {source: governed(t, ""), allowed: false, code: 403},
		"warn warns":   {source: governed(t, "enforcementMode: warn"), allowed: true, code: 200, warned: true},
		"audit changes nothing": {source: governed(t, "enforcementMode: audit\ntemplates: rewrite\naccept: [fractional-quantity]"),
			allowed: true, code: 200, audited: string(policies.Denied)},
		"rewrite rewrites": {source: governed(t, "templates: rewrite\naccept: [fractional-quantity]"),
			allowed: true, code: 200, patched: true},
		"off is silent":   {source: governed(t, `templates: "off"`), allowed: true, code: 200},
		"no policy":       {source: fixed{}, allowed: true, code: 200},
		"a broken policy": {source: fixed{in: policies.Input{PolicyError: errors.New("x")}}, allowed: true, code: 200},
		"whole GPUs": {source: governed(t, ""),
			object: strings.Replace(deployment, "500m", "1", 1), allowed: true, code: 200},
		"a label that is misspelt": {source: governed(t, ""), object: labelled("memroy"), allowed: true, code: 200, says: "did you mean gpuslice.dev/memory?"},
		"a label in capitals":      {source: governed(t, ""), object: labelled("Memory"), allowed: true, code: 200, says: "write gpuslice.dev/memory"},
		"a label that is right":    {source: governed(t, ""), object: labelled("memory"), allowed: true, code: 200},
		"a label of others":        {source: fixed{}, object: strings.Replace(deployment, "500m", "1", 1), allowed: true, code: 200},
		"a label, and no policy":   {source: fixed{}, object: labelled("memory"), allowed: true, code: 200, says: "no policy governs the namespace"},
		"a label, and a broken policy": {source: fixed{in: policies.Input{PolicyError: errors.New("x")}}, object: labelled("memroy"),
			allowed: true, code: 200},
		"a misspelt label under audit": {source: governed(t, "enforcementMode: audit"), object: labelled("memroy"), allowed: true, code: 200},
		"a misspelt label under off":   {source: governed(t, `mode: "off"`), object: labelled("memroy"), allowed: true, code: 200},
		"our own namespace": {source: governed(t, ""),
			edit: func(r *admissionv1.AdmissionRequest) { r.Namespace = api.SystemNamespace }, allowed: true, code: 200},
		"a scale": {source: governed(t, ""), edit: func(r *admissionv1.AdmissionRequest) { r.SubResource = "scale" },
			allowed: true, code: 200},
		"a deletion": {source: governed(t, ""),
			edit: func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete }, allowed: true, code: 200},
		"no object":                       {source: governed(t, ""), object: "-", code: 400},
		"no JSON object":                  {source: governed(t, ""), object: "[]", code: 400},
		"a spec that is a number":         {source: governed(t, ""), object: `{"spec":{"template":1}}`, allowed: true, code: 200},
		"a namespace that cannot be read": {source: fixed{err: errors.New("away")}, code: 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := deployment
			if tt.object != "" {
				object = strings.TrimPrefix(tt.object, "-")
			}
			req := review.Request{
				Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "team-a", Operation: admissionv1.Create,
				Object: runtime.RawExtension{Raw: []byte(object)},
			}
			if tt.edit != nil {
				tt.edit(&req)
			}
			got := handle(t, NewTemplates(Options{Source: tt.source, Metrics: metrics.New("test"), Namespace: api.SystemNamespace}), req)
			if got.Allowed != tt.allowed || got.Result.Code != tt.code || len(got.Warnings) > 0 != (tt.warned || tt.says != "") ||
				!strings.Contains(strings.Join(got.Warnings, "\n"), tt.says) || len(got.Patch) > 0 != tt.patched {
				t.Errorf("allowed %v code %d warnings %q patches %v", got.Allowed, got.Result.Code, got.Warnings, got.Patch)
			}
			if tt.audited != "" && got.AuditAnnotations["ifEnforced"] != tt.audited {
				t.Errorf("the audit log has %v", got.AuditAnnotations)
			}
			if text := got.Result.Message + strings.Join(got.Warnings, ""); (tt.code == 403 || tt.warned) &&
				!strings.Contains(text, api.LabelFraction) {
				t.Errorf("it does not say what to write: %q", text)
			}
		})
	}
}
