package deploy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// validating returns the entries of the validating configuration, by name.
func validating(t *testing.T) map[string]admissionv1.ValidatingWebhook {
	t.Helper()
	entries := map[string]admissionv1.ValidatingWebhook{}
	for _, w := range every[*admissionv1.ValidatingWebhookConfiguration](t)[0].Webhooks {
		entries[w.Name] = w
	}
	return entries
}

// hasClaims is the part about claims in the conditions of new pods.
const hasClaims = "object.spec.?resourceClaims.orValue([]).size() > 0"

// oneLine is an expression without the manifest's line breaks.
func oneLine(expression string) string { return strings.Join(strings.Fields(expression), " ") }

func TestValidatingEntries(t *testing.T) {
	t.Parallel()
	// Authors may write or remove the label: the condition decides about pods without it.
	t.Run("a new pod is validated with the label and without", func(t *testing.T) {
		t.Parallel()
		entries := validating(t)
		sliced, others := entries["sliced-pods.gpuslice.dev"], entries["pods.gpuslice.dev"]
		selected := func(operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: api.LabelTier, Operator: operator}}}
		}
		want := []*metav1.LabelSelector{selected(metav1.LabelSelectorOpExists), selected(metav1.LabelSelectorOpDoesNotExist)}
		if diff := cmp.Diff(want, []*metav1.LabelSelector{sliced.ObjectSelector, others.ObjectSelector}); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if sliced.MatchConditions != nil {
			t.Errorf("%s leaves pods out: %v", sliced.Name, sliced.MatchConditions)
		}
		for name, e := range entries {
			if strings.HasPrefix(name, "extended-resources") {
				if diff := cmp.Diff(others.ObjectSelector, e.ObjectSelector); diff != "" {
					t.Errorf("%s: a pod with the label is validated twice (-want +got)\n%s", name, diff)
				}
			}
		}
		if len(others.MatchConditions) != 1 {
			t.Fatalf("%s has %d conditions", others.Name, len(others.MatchConditions))
		}
		mutated := withoutOtherSystems(t, every[*admissionv1.MutatingWebhookConfiguration](t)[0].Webhooks[0].MatchConditions[0].Expression)
		if diff := cmp.Diff(strings.Fields(mutated), strings.Fields(others.MatchConditions[0].Expression)); diff != "" {
			t.Errorf("(-mutating +validating)\n%s", diff)
		}
		sliced.Name, sliced.ObjectSelector, sliced.NamespaceSelector = "", nil, nil
		others.Name, others.ObjectSelector, others.NamespaceSelector, others.MatchConditions = "", nil, nil, nil
		if diff := cmp.Diff(sliced, others); diff != "" {
			t.Errorf("they differ in more (-sliced +others)\n%s", diff)
		}
	})
	t.Run("where a namespace fails open for claims, a new pod is validated by one of two", func(t *testing.T) {
		t.Parallel()
		entries := validating(t)
		all, beside, claims := entries["pods.gpuslice.dev"], entries["gpus-beside-claims.gpuslice.dev"], entries["claims-open.gpuslice.dev"]
		if len(beside.MatchConditions) != 1 || len(claims.MatchConditions) != 1 {
			t.Fatalf("conditions: %v and %v", beside.MatchConditions, claims.MatchConditions)
		}
		before, after, _ := strings.Cut(oneLine(all.MatchConditions[0].Expression), hasClaims)
		got := oneLine(beside.MatchConditions[0].Expression)
		if !strings.HasPrefix(got, before+"object.spec.?resourceClaims") || !strings.HasSuffix(got, after) {
			t.Errorf("(-elsewhere +here)\n%s", cmp.Diff(oneLine(all.MatchConditions[0].Expression), got))
		}
		if diff := cmp.Diff(hasClaims+" && !( "+got+" )", oneLine(claims.MatchConditions[0].Expression)); diff != "" {
			t.Errorf("(-with claims and not the other +got)\n%s", diff)
		}
		want := metav1.LabelSelectorRequirement{Key: api.LabelFail, Operator: metav1.LabelSelectorOpIn, Values: []string{api.FailOpenForClaims}}
		if diff := cmp.Diff(want, beside.NamespaceSelector.MatchExpressions[2]); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if *beside.FailurePolicy != admissionv1.Fail || *claims.FailurePolicy != admissionv1.Ignore {
			t.Errorf("failurePolicy %s, and of claims alone %s", *beside.FailurePolicy, *claims.FailurePolicy)
		}
		beside.Name, beside.MatchConditions, beside.FailurePolicy,
			claims.Name, claims.MatchConditions, claims.FailurePolicy = "", nil, nil, "", nil, nil
		if diff := cmp.Diff(beside, claims); diff != "" {
			t.Errorf("they differ in more (-beside claims +claims)\n%s", diff)
		}
	})
	t.Run("the README has Flux ignore what is written of each entry", func(t *testing.T) {
		t.Parallel()
		page, err := os.ReadFile("README.md")
		if err != nil {
			t.Fatal(err)
		}
		n := len(validating(t))
		for _, want := range []string{fmt.Sprintf("one path for each webhook, at most %d:\n", n),
			fmt.Sprintf("and so on, to /webhooks/%d\n", n-1)} {
			if !strings.Contains(string(page), want) {
				t.Errorf("it has no %q", want)
			}
		}
	})
	t.Run("a changed pod is validated whatever its labels", func(t *testing.T) {
		t.Parallel()
		changed := validating(t)["changed-pods.gpuslice.dev"]
		if changed.ObjectSelector != nil || len(changed.MatchConditions) != 2 {
			t.Fatalf("it is selected by %v, and by %d conditions", changed.ObjectSelector, len(changed.MatchConditions))
		}
		if diff := cmp.Diff(validating(t)["pods.gpuslice.dev"].MatchConditions[0], changed.MatchConditions[0]); diff != "" {
			t.Errorf("(-new +changed)\n%s", diff)
		}
		created, updated := validating(t)["pods.gpuslice.dev"].Rules[0], changed.Rules[0]
		if diff := cmp.Diff([][]admissionv1.OperationType{{admissionv1.Create}, {admissionv1.Update}},
			[][]admissionv1.OperationType{created.Operations, updated.Operations}); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(created.Rule, updated.Rule); diff != "" {
			t.Errorf("(-new +changed)\n%s", diff)
		}
	})
}
