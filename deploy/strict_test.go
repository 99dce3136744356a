package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/webhook/admission/pods"
)

const strictPolicy = "gpuslice-strict"

func policyNamed(t *testing.T, name string) *admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	all := every[*admissionv1.ValidatingAdmissionPolicy](t)
	i := slices.IndexFunc(all, func(p *admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no policy %s", name)
	}
	return all[i]
}

func variable(t *testing.T, p *admissionv1.ValidatingAdmissionPolicy, name string) string {
	t.Helper()
	for _, v := range p.Spec.Variables {
		if v.Name == name {
			return v.Expression
		}
	}
	t.Fatalf("policy %s has no variable %s", p.Name, name)
	return ""
}

// withoutOtherSystems takes the words of other systems, which request nothing by themselves, out of the mutating webhook's condition.
func withoutOtherSystems(t *testing.T, expression string) string {
	t.Helper()
	from, to := strings.Index(expression, "(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c,"),
		strings.Index(expression, "(oldObject != null")
	if from < 0 || to < from {
		t.Fatalf("the condition does not know other systems: %s", expression)
	}
	return expression[:from] + expression[to:]
}

func TestStrict(t *testing.T) {
	t.Parallel()
	t.Run("matches the pods that the webhook reviews", func(t *testing.T) {
		t.Parallel()
		const name = "touches-a-gpu"
		want := every[*admissionv1.MutatingWebhookConfiguration](t)[0].Webhooks[0].MatchConditions[0]
		if want.Name != name {
			t.Fatalf("the first condition of the webhook is %s", want.Name)
		}
		conditions := policyNamed(t, strictPolicy).Spec.MatchConditions
		i := slices.IndexFunc(conditions, func(c admissionv1.MatchCondition) bool { return c.Name == name })
		if i < 0 {
			t.Fatalf("no condition %s among %v", name, conditions)
		}
		// What a claim takes the policy cannot tell: pods that claim other devices are not held to it.
		expression := strings.ReplaceAll(withoutOtherSystems(t, want.Expression), "object.spec.?resourceClaims.orValue([]).size() > 0 ||", "")
		// It denies pods with more entries than it looks at, where the webhook reviews them: so it looks at more.
		if diff := cmp.Diff(strings.Fields(expression),
			strings.Fields(strings.ReplaceAll(conditions[i].Expression, "> 2000", "> 500"))); diff != "" {
			t.Errorf("(-webhook +policy)\n%s", diff)
		}
	})
	t.Run("is for labeled namespaces that are not bypassed", func(t *testing.T) {
		t.Parallel()
		all := every[*admissionv1.ValidatingAdmissionPolicyBinding](t)
		i := slices.IndexFunc(all, func(b *admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName == strictPolicy })
		exempt := every[*admissionv1.MutatingWebhookConfiguration](t)[0].Webhooks[0].NamespaceSelector.MatchExpressions[0]
		want := []metav1.LabelSelectorRequirement{
			exempt,
			{Key: api.LabelEnforce, Operator: metav1.LabelSelectorOpIn, Values: []string{api.EnforceStrict}},
			{Key: api.LabelBypass, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
		}
		if diff := cmp.Diff(want, all[i].Spec.MatchResources.NamespaceSelector.MatchExpressions); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if got := *policyNamed(t, strictPolicy).Spec.FailurePolicy; got != admissionv1.Fail {
			t.Errorf("failurePolicy %s", got)
		}
	})
	t.Run("knows the guard by name and image", func(t *testing.T) {
		t.Parallel()
		p := policyNamed(t, strictPolicy)
		env := every[*appsv1.Deployment](t)[0].Spec.Template.Spec.Containers[0].Env
		if image := (corev1.EnvVar{Name: "GPUSLICE_GUARD_IMAGE", Value: strings.Trim(variable(t, p, "guardImage"), "'")}); !slices.Contains(
			env, image) {
			t.Errorf("the Deployment's %v lack %v", env, image)
		}
		for _, name := range []string{limits.CheckContainer, limits.GuardContainer} {
			if !strings.Contains(variable(t, p, "guards"), "'"+name+"'") {
				t.Errorf("container %s is not known", name)
			}
		}
	})
	t.Run("knows recorders by name, program and volume", func(t *testing.T) {
		t.Parallel()
		recorders := variable(t, policyNamed(t, strictPolicy), "recorders")
		for _, words := range []string{"'^" + limits.RecordContainer + "[0-9]+$'", "'" + limits.ShimProgram + "'",
			"'" + limits.RecordOption + "'", "'" + limits.ShimFolder + "'", "'" + limits.ShimVolume + "'"} {
			if !strings.Contains(recorders, words) {
				t.Errorf("%s is not among what a recorder has: %s", words, recorders)
			}
		}
	})
	// The policy's list of labels is held against what the core reads as a request.
	t.Run("knows what requests a slice", func(t *testing.T) {
		t.Parallel()
		asking := variable(t, policyNamed(t, strictPolicy), "asking")
		policy, problems := config.Parse("p", []byte("apiVersion: "+config.APIVersion+"\n"))
		if len(problems) > 0 {
			t.Fatal(problems.ToAggregate())
		}
		asks := func(change func(*corev1.Pod)) bool {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a",
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}}}}}}
			change(pod)
			return policies.Decide(policies.Input{Pod: pod, Policy: policy}).UnchangedReason == ""
		}
		if asks(func(*corev1.Pod) {}) {
			t.Fatal("a pod without a label requests a slice: nothing is proved")
		}
		for _, label := range []string{api.LabelMemory, api.LabelMemoryLimit, api.LabelFraction, api.LabelClass, api.LabelCompute,
			api.LabelShare, api.LabelStrategy, api.LabelFramework, api.LabelContainer} {
			value := "a" // the container's name, and no size: that an ask cannot be read makes it none the less one
			if label == api.LabelShare {
				value = api.ShareEnabled
			}
			want := asks(func(p *corev1.Pod) { p.Labels = map[string]string{label: value} })
			if got := strings.Contains(asking, "'"+label+"'"); got != want {
				t.Errorf("label %s: the core reads it as an ask: %t, the policy: %t", label, want, got)
			}
		}
		if !strings.Contains(asking, "'"+api.AnnotationContainers+"'") {
			t.Errorf("the annotation %s is not read as an ask", api.AnnotationContainers)
		}
	})
}

func TestGuardAccess(t *testing.T) {
	t.Parallel()
	// The guard is where they inject it, and a bypass ends every denial.
	t.Run("is denied where the webhooks review", func(t *testing.T) {
		t.Parallel()
		const name = "gpuslice-guard"
		all := every[*admissionv1.ValidatingAdmissionPolicyBinding](t)
		i := slices.IndexFunc(all, func(b *admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName == name })
		want := []metav1.LabelSelectorRequirement{
			every[*admissionv1.MutatingWebhookConfiguration](t)[0].Webhooks[0].NamespaceSelector.MatchExpressions[0],
			{Key: api.LabelBypass, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
		}
		if diff := cmp.Diff(want, all[i].Spec.MatchResources.NamespaceSelector.MatchExpressions); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		names := fmt.Sprintf("['%s', '%s']", limits.CheckContainer, limits.GuardContainer)
		if condition := policyNamed(t, name).Spec.MatchConditions[0].Expression; strings.Count(condition, names) != 2 {
			t.Errorf("%s does not name %s for exec, attach and for ephemeral containers", condition, names)
		}
	})
}

func TestAdmissionPolicies(t *testing.T) {
	t.Parallel()
	// The API server compares the whole name.
	t.Run("name the ServiceAccount of the webhook", func(t *testing.T) {
		t.Parallel()
		name := "'system:serviceaccount:" + api.SystemNamespace + ":" + pods.ServiceAccount + "'"
		if ours := variable(t, policyNamed(t, strictPolicy), "ours"); !strings.HasSuffix(ours, name) {
			t.Errorf("%s", ours)
		}
		for _, policy := range []string{"gpuslice-own-rights", "gpuslice-own-conditions", "gpuslice-own-ledgers", "gpuslice-own-templates",
			"gpuslice-own-names", "gpuslice-own-events"} {
			own := policyNamed(t, policy).Spec.MatchConditions
			if len(own) != 1 || !strings.HasSuffix(own[0].Expression, name) {
				t.Errorf("%s: %+v", policy, own)
			}
		}
		schema := every[*flowv1.FlowSchema](t)[0]
		want := &flowv1.ServiceAccountSubject{Name: pods.ServiceAccount, Namespace: api.SystemNamespace}
		if diff := cmp.Diff(want, schema.Spec.Rules[0].Subjects[0].ServiceAccount); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	// Mutation alone stays, and denies nothing by itself then.
	t.Run("a bypass turns off everything that denies", func(t *testing.T) {
		t.Parallel()
		bypass := metav1.LabelSelectorRequirement{Key: api.LabelBypass, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}}
		has := func(s *metav1.LabelSelector) bool {
			return s != nil && slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return cmp.Equal(r, bypass) })
		}
		for _, w := range every[*admissionv1.ValidatingWebhookConfiguration](t)[0].Webhooks {
			if reviewsPods := slices.ContainsFunc(w.Rules, func(r admissionv1.RuleWithOperations) bool {
				return strings.HasPrefix(r.Resources[0], "pods")
			}); reviewsPods && !has(w.NamespaceSelector) {
				t.Errorf("%s goes on denying", w.Name)
			}
		}
		for _, w := range every[*admissionv1.MutatingWebhookConfiguration](t)[0].Webhooks {
			if has(w.NamespaceSelector) {
				t.Errorf("%s gives no slices any more", w.Name)
			}
		}
	})
}

func TestPriorityLevel(t *testing.T) {
	t.Parallel()
	// What is lent comes back only when those end who wait for the webhook.
	t.Run("the webhook's calls have seats that nobody borrows", func(t *testing.T) {
		t.Parallel()
		schema, level := every[*flowv1.FlowSchema](t)[0], every[*flowv1.PriorityLevelConfiguration](t)[0]
		if schema.Spec.PriorityLevelConfiguration.Name != level.Name {
			t.Errorf("the calls go to level %s, ours is %s", schema.Spec.PriorityLevelConfiguration.Name, level.Name)
		}
		const everyServiceAccount = 9000 // the precedence at which the API server's own schema takes all of them
		if schema.Spec.MatchingPrecedence >= everyServiceAccount {
			t.Errorf("precedence %d comes after the schema of every ServiceAccount", schema.Spec.MatchingPrecedence)
		}
		if l := level.Spec.Limited; *l.LendablePercent != 0 || *l.NominalConcurrencyShares < 5 {
			t.Errorf("%d shares, %d %% of them lent", *l.NominalConcurrencyShares, *l.LendablePercent)
		}
	})
}

func TestFailurePolicy(t *testing.T) {
	t.Parallel()
	// Whoever labels a namespace fail=open gives up on outages and on nothing else.
	t.Run("every entry that fails has one that does not", func(t *testing.T) {
		t.Parallel()
		entries := validating(t)
		differInFailureAlone(t, entries["pods.gpuslice.dev"], entries["pods-open.gpuslice.dev"], api.FailOpenForClaims)
		for _, kind := range []string{"sliced-pods", "changed-pods", "subresources"} {
			differInFailureAlone(t, entries[kind+".gpuslice.dev"], entries[kind+"-open.gpuslice.dev"])
		}
		for name, w := range entries {
			_, ok := entries[strings.TrimSuffix(name, ".gpuslice.dev")+"-open.gpuslice.dev"]
			if *w.FailurePolicy == admissionv1.Fail && !ok && name != "gpus-beside-claims.gpuslice.dev" {
				t.Errorf("%s has no entry that fails open", name)
			}
		}
	})
}

// differInFailureAlone compares two entries; elsewhere are further values of the label under which the first leaves pods to others.
func differInFailureAlone(t *testing.T, closed, open admissionv1.ValidatingWebhook, elsewhere ...string) {
	t.Helper()
	if closed.Name == "" || open.Name == "" {
		t.Fatalf("an entry is missing beside %q and %q", closed.Name, open.Name)
	}
	bypass := metav1.LabelSelectorRequirement{Key: api.LabelBypass, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}}
	fail := func(operator metav1.LabelSelectorOperator, others ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: api.LabelFail, Operator: operator, Values: append([]string{api.FailOpen}, others...)}
	}
	exempt := closed.NamespaceSelector.MatchExpressions[0]
	for _, tt := range []struct {
		entry  *admissionv1.ValidatingWebhook
		policy admissionv1.FailurePolicyType
		fail   metav1.LabelSelectorRequirement
	}{{&closed, admissionv1.Fail, fail(metav1.LabelSelectorOpNotIn, elsewhere...)},
		{&open, admissionv1.Ignore, fail(metav1.LabelSelectorOpIn)}} {
		if *tt.entry.FailurePolicy != tt.policy {
			t.Errorf("%s: failurePolicy %s", tt.entry.Name, *tt.entry.FailurePolicy)
		}
		if diff := cmp.Diff([]metav1.LabelSelectorRequirement{exempt, bypass, tt.fail}, tt.entry.NamespaceSelector.MatchExpressions); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.entry.Name, diff)
		}
		tt.entry.Name, tt.entry.FailurePolicy, tt.entry.NamespaceSelector = "", nil, nil
	}
	if diff := cmp.Diff(closed, open); diff != "" {
		t.Errorf("they differ in more (-fails +open)\n%s", diff)
	}
}
