package webhook

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
)

func TestARefusalCarriesItsReasonsForPeopleAndTools(t *testing.T) {
	t.Parallel()
	got := respond(policies.Decision{
		Outcome: policies.Refused, Would: policies.Refused, Policy: "gpuslice-system/a", Mode: policies.EnforceFull,
		Violations: []policies.Violation{
			{Rule: policies.RuleFit, Reason: "no pool holds it", Detail: "10Gi does not fit"},
			{Rule: policies.RuleLimit, Reason: "above the limit", Detail: "8Gi is the most"},
		},
	}, nil)
	want := &metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: "no pool holds it: 10Gi does not fit; above the limit: 8Gi is the most",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: "fit", Message: "no pool holds it: 10Gi does not fit"}, {Type: "limit", Message: "above the limit: 8Gi is the most"},
		}},
	}
	if diff := cmp.Diff(want, got.Result); diff != "" || got.Allowed {
		t.Errorf("allowed %v (-want +got)\n%s", got.Allowed, diff)
	}
}

func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, want []string }{
		"none":                       {nil, nil},
		"a short one as it is":       {[]string{"a"}, []string{"a"}},
		"control characters go":      {[]string{"a\n\x1b[31mb\x00"}, []string{"a  [31mb "}},
		"broken UTF-8 goes":          {[]string{"a\xffb"}, []string{"a b"}},
		"ten are kept":               {strings.Split("abcdefghij", ""), strings.Split("abcdefghij", "")},
		"of eleven the rest is told": {strings.Split("abcdefghijk", ""), append(strings.Split("abcdefghi", ""), "and 2 more lines")},
		"a long one is folded":       {[]string{strings.Repeat("x", 200) + " " + strings.Repeat("y", 200)}, []string{strings.Repeat("x", 200), strings.Repeat("y", 200)}},
		"one that just fits":         {[]string{strings.Repeat("x", maxWarning)}, []string{strings.Repeat("x", maxWarning)}},
		"a long word is cut":         {[]string{strings.Repeat("x", 300)}, []string{strings.Repeat("x", maxWarning-3) + "..."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, warnings(tt.in)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	f.Add("plain", 10)
	f.Add(strings.Repeat("ä", 200), 7)
	f.Add("\xff\xfe\x00", 4)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 4 || most > 1<<16 {
			t.Skip("callers ask for no such bound")
		}
		if got := clean(text, most); len(got) > most || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\x00\x1b") {
			t.Errorf("%q", got)
		}
	})
}
