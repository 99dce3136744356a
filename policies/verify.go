package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// whyAsPromised is why Verify lets a pod pass: stable words for metrics, as those of decide.go.
const whyAsPromised = "as promised"

// Verify judges a pod as it is about to be stored, after every mutating webhook. promised is the trusted one on it
// (Keys.PromiseOf), nil if there is none. Such a pod must be as it was promised, and the tamper rules, strategies,
// limits and minimum enforcement of the policy now in force must hold for it: they are checked against the promise, and
// nothing is planned again, nor proof demanded. Other changes of policy or nodes since then are no reason to deny it: its
// slice was allocated. A pod without a promise must not be one that Decide would have rewritten.
//
// Quota is not looked at: see accounting.Holding, and package budgets of the webhook.
func Verify(in Input, promised *promise.Promise) Decision {
	if metav1.HasAnnotation(in.Pod.ObjectMeta, corev1.MirrorPodAnnotationKey) {
		return leaveUnchanged(whyMirror)
	}
	if in.Policy.Off() {
		d := ungoverned(in)
		d.Warnings = nil // its author has read them already
		return in.settle(d)
	}
	var d Decision
	switch {
	case promised == nil || promised.Namespace != in.Namespace.Name:
		d = verifyUnpromised(in)
	case promised.Newer():
		d = leaveUnchanged(whyNewer)
	default:
		d = verifyPromised(&in, promised)
	}
	return in.settle(d)
}

// verifyPromised compares a pod with its promise, and the promise with the policy in force. The first check that finds
// something ends it: the holdings of a changed pod are unknown.
func verifyPromised(in *Input, given *promise.Promise) Decision {
	for _, check := range []func(*Input, *promise.Promise) []api.Violation{
		checkUndone, checkPromisedTampering, checkPromisedStrategy, checkPromisedTier, checkPromisedLimits,
	} {
		if found := check(in, given); len(found) > 0 {
			return denial(found...)
		}
	}
	return leaveUnchanged(whyAsPromised)
}

func checkUndone(in *Input, given *promise.Promise) []api.Violation {
	changed := podedit.Undone(given, in.Pod, in.Pools)
	if len(changed) == 0 {
		return nil
	}
	if found := checkGuardImage(in, given); len(found) > 0 {
		return found
	}
	remedy := fmt.Sprintf("a copied annotation or another webhook did this; remove the annotation %s from the pod, or let those who run the cluster exclude these fields in the other webhook",
		api.AnnotationPromise)
	if slices.ContainsFunc(changed, func(path string) bool { return strings.Contains(path, "["+podspec.Prefix) }) {
		remedy = "another webhook did this; those who run the cluster exclude containers gpuslice-* there"
	}
	v := api.Violation{Rule: api.RuleUndone, Reason: "the slice was changed after it was given",
		Detail: message.ShortList(changed) + "; " + remedy}
	v.Container, v.Field = fieldOfChange(changed[0])
	return []api.Violation{v}
}

// checkPromisedTampering applies the rules, the bound on containers and the policy on claims to all that is not of the
// promise. The pod is as promised by then.
func checkPromisedTampering(in *Input, promised *promise.Promise) []api.Violation {
	if v := tooManyContainers(in.Pod); v != nil {
		return []api.Violation{*v}
	}
	out := rules.UnpromisedHostIPC(in.Pod, promised)
	if len(promised.ClaimTemplates()) > 0 {
		if v := strategies.Grouped(&in.Pod.Spec); v != nil { // another webhook may have added it
			out = append(out, *v)
		}
	}
	authors := rules.Subject{Pod: withoutPromised(in.Pod, promised), Pools: in.Pools, MPS: in.Policy.MPS}
	return append(append(out, rules.Find(authors, true)...), checkClaims(in, promised.HasClaim)...)
}

// withoutPromised is the pod without those edits of its promise that a tamper rule would find: the volumes of a
// strategy, the guard with its ways to the devices, and the IPC namespace of the node, which UnpromisedHostIPC looks
// at. The pod itself is not changed; the rest of it is shared.
func withoutPromised(pod *corev1.Pod, promised *promise.Promise) *corev1.Pod {
	out := *pod
	out.Spec.HostIPC = false
	out.Spec.Volumes = slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), func(v corev1.Volume) bool { return promised.HasVolume(v.Name) })
	if promised.Guard == nil {
		return &out
	}
	out.Spec.InitContainers = slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(c corev1.Container) bool {
		return podedit.IsGuard(promised, c.Name)
	})
	out.Annotations = maps.Clone(pod.Annotations)
	for name := range promised.Guard.Annotations {
		delete(out.Annotations, name)
	}
	return &out
}

func checkPromisedStrategy(in *Input, promised *promise.Promise) []api.Violation {
	if in.Policy.Allows(promised.Strategy) {
		return nil
	}
	return []api.Violation{{Rule: api.RulePolicy, Reason: "strategy not allowed", Detail: fmt.Sprintf(
		"the pod was given a slice under %s, and policy %s allows %s now; create it again",
		promised.Strategy, in.Policy.Name, message.JoinNames(in.Policy.Strategies))}}
}

// checkPromisedTier holds the promise to the weakest tier of the policy in force. A proof counts when the slice is
// planned, since it is of a pool: a driver that is updated there takes nothing from a pod that runs.
func checkPromisedTier(in *Input, promised *promise.Promise) []api.Violation {
	if in.Policy.MinimumEnforcement.Tier == "" || promised.Planned.Tier.AtLeast(in.Policy.MinimumEnforcement.Tier) {
		return nil
	}
	return []api.Violation{{Rule: api.RuleEnforcement, Reason: "below the minimum enforcement",
		Detail: fmt.Sprintf("policy %s demands %s, and %s on %s reaches %s",
			in.Policy.Name, in.Policy.MinimumEnforcement.Tier, promised.Strategy, promised.Place(), promised.Planned.Tier)}}
}

// checkPromisedLimits checks the pod's charge against the limits. The pod shows which containers run side by side.
func checkPromisedLimits(in *Input, promised *promise.Promise) []api.Violation {
	most, policy := in.Policy.Limits, in.Policy.Name
	if most == (config.Policy{}).Limits {
		return nil
	}
	for i := range promised.Containers {
		c := &promised.Containers[i]
		if v := accounting.Exceeds(accounting.ChargeFor(promised, c), most.PerContainer,
			fmt.Sprintf("container %q", c.Name), policy, promised.Place, accounting.RequestLess); v != nil {
			return []api.Violation{*v}
		}
		if v := accounting.ExceedsBurst(c.Slice, c.Limit, in.Policy, c.Name); v != nil {
			return []api.Violation{*v}
		}
	}
	if v := accounting.Exceeds(accounting.ChargeOn(promised, in.Pod), most.PerPod, "the pod", policy, promised.Place, accounting.RequestLess); v != nil {
		return []api.Violation{*v}
	}
	return nil
}

func verifyUnpromised(in Input) Decision {
	d := decideGoverned(in)
	d.Warnings = nil
	if in.Policy.EnforcementMode == api.EnforceAudit {
		return d
	}
	if names := choosingContainers(&in.Pod.Spec, in.Pools); d.Outcome == DevicesHidden && len(names) > 0 {
		return denial(api.Violation{Rule: api.RuleUndone, Reason: "the pod chooses its devices", Detail: fmt.Sprintf(
			"%s by the variables %s or %s; remove them, and request %s: 1 where a GPU is needed",
			message.ShortList(names), nvidia.EnvVisibleDevices, nvidia.EnvCUDAVersion, api.ResourceGPU)})
	}
	if written := writtenRecords(new(corev1.Pod), in.Pod); d.Outcome != Denied && d.Outcome != Mutated && len(written) > 0 {
		return denial(api.Violation{Rule: api.RuleUndone, Reason: "annotations reserved for gpuslice",
			Field: metadataField(written[0]), Detail: fmt.Sprintf(
				"it has no slice, and gpuslice's mutating webhook, which removes this, was not called; remove %s", message.JoinNames(written))})
	}
	switch d.Outcome {
	case DevicesHidden:
		return leaveUnchanged(d.UnchangedReason)
	case Mutated:
	default:
		return d
	}
	return denial(api.Violation{Rule: api.RuleUndone, Reason: "the pod requests a slice and was not given one", Detail: fmt.Sprintf(
		"gpuslice's mutating webhook was not called, its answer was lost, or another webhook changed the pod after it; create the pod again, and if it is denied again tell those who run the cluster (policy %s; gpuslice doctor lists webhooks)",
		in.Policy.Name)})
}
