package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/envvar"
	"github.com/gpuslice/gpuslice/policies/internal/limits"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/rulename"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Why pods pass that Verify looks at: stable words for metrics.
const (
	whyAsPromised = "as promised"
	whyNewer      = "as a newer version promised"
)

// Verify judges a pod as it is about to be stored, after every mutating webhook. promise is the one on it that is to be
// trusted (Keys.PromiseOf), nil where there is none. Such a pod must be as it was promised, and the tamper rules, limits
// and minimum enforcement of the policy now in force must hold for it: that is read from the promise, and nothing is
// planned again, nor proof demanded. What a policy or a node change made of its fit meanwhile is no reason: it was given
// what it was given. A pod without a promise must not be one that Decide would have rewritten.
//
// Quota is not looked at: see Holding.
func Verify(in Input, promise *promise.Promise) Decision {
	if isMirror(in.Pod) {
		return leaveUnchanged(whyMirror)
	}
	if in.Policy.Off() {
		d := ungoverned(in)
		d.Warnings = nil // its author has read them already
		return d.WithBypass(in.Namespace)
	}
	var d Decision
	switch {
	case promise == nil || promise.Namespace != in.Namespace.Name:
		d = verifyUnpromised(in)
	case promise.Newer():
		d = leaveUnchanged(whyNewer)
	default:
		d = verifyPromised(&in, promise)
	}
	return d.WithMode(in.Policy).WithBypass(in.Namespace)
}

// verifyPromised holds a pod against its promise, and the promise against the policy in force. The first check that finds
// something ends it: what a changed pod holds is unknown.
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
	changed := given.Undone(in.Pod, in.Pools)
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
	return []api.Violation{{Rule: rulename.Undone, Reason: "the slice was changed after it was given", Detail: message.ShortList(changed) + "; " + remedy}}
}

// checkPromisedTampering holds what is not of the promise to the rules, to the bound on containers, and to what policy says of claims. The pod is as
// promised by then.
func checkPromisedTampering(in *Input, promise *promise.Promise) []api.Violation {
	if v := tooManyContainers(in.Pod); v != nil {
		return []api.Violation{*v}
	}
	out := rules.UnpromisedHostIPC(in.Pod, promise)
	authors := subjectOf(in)
	authors.Pod = withoutPromised(in.Pod, promise)
	return append(append(out, rules.Find(authors, true)...), checkClaims(in, promise.HasClaim)...)
}

// withoutPromised is the pod without what its promise wrote that a tamper rule would find: the volumes of a strategy, the
// guard with its ways to the devices, and the IPC namespace of the node, which UnpromisedHostIPC looks at. The pod itself
// is not changed; what is left of it is shared.
func withoutPromised(pod *corev1.Pod, promise *promise.Promise) *corev1.Pod {
	out := *pod
	out.Spec.HostIPC = false
	out.Spec.Volumes = slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), func(v corev1.Volume) bool { return promise.HasVolume(v.Name) })
	if promise.Guard == nil {
		return &out
	}
	out.Spec.InitContainers = slices.DeleteFunc(slices.Clone(pod.Spec.InitContainers), func(c corev1.Container) bool { return promise.HasGuard(c.Name) })
	out.Annotations = maps.Clone(pod.Annotations)
	for name := range promise.Guard.Annotations {
		delete(out.Annotations, name)
	}
	return &out
}

func checkPromisedStrategy(in *Input, promise *promise.Promise) []api.Violation {
	if in.Policy.Allows(promise.Strategy) {
		return nil
	}
	return []api.Violation{{Rule: api.RulePolicy, Reason: "strategy not allowed", Detail: fmt.Sprintf(
		"the pod was given a slice under %s, and policy %s allows %s now; create it again", promise.Strategy, in.Policy.Name, message.JoinNames(in.Policy.Strategies))}}
}

// checkPromisedTier holds the promise to the weakest tier of the policy in force. Whether that is proven counts when the slice is
// planned: it is of pools, and a driver that is updated takes nothing from a pod that runs.
func checkPromisedTier(in *Input, promise *promise.Promise) []api.Violation {
	if in.Policy.MinimumEnforcement.Tier == "" || promise.Planned.Tier.AtLeast(in.Policy.MinimumEnforcement.Tier) {
		return nil
	}
	return []api.Violation{{Rule: rulename.Enforcement, Reason: "below the minimum enforcement", Detail: fmt.Sprintf("policy %s demands %s, and %s on %s reaches %s",
		in.Policy.Name, in.Policy.MinimumEnforcement.Tier, promise.Strategy, promise.Place(), promise.Planned.Tier)}}
}

// checkPromisedLimits holds what the pod is charged for to the limits. The pod says which containers run side by side.
func checkPromisedLimits(in *Input, promise *promise.Promise) []api.Violation {
	most, policy := in.Policy.Limits, in.Policy.Name
	if most == (config.Policy{}).Limits {
		return nil
	}
	for i := range promise.Containers {
		c := &promise.Containers[i]
		if v := limits.Exceeds(promise.ChargeFor(c), most.PerContainer, fmt.Sprintf("container %q", c.Name), policy, promise.Place); v != nil {
			return []api.Violation{*v}
		}
		if v := (limits.Sizes{Slice: c.Slice, Limit: c.Limit}).ExceedsBurst(in.Policy, c.Name); v != nil {
			return []api.Violation{*v}
		}
	}
	if v := limits.Exceeds(promise.ChargeOn(in.Pod), most.PerPod, "the pod", policy, promise.Place); v != nil {
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
		return denial(api.Violation{Rule: rulename.Undone, Reason: "the pod chooses its devices", Detail: fmt.Sprintf(
			"%s by the variables %s or %s; remove them, and request %s: 1 where a GPU is needed", message.ShortList(names), envvar.VisibleDevices, envvar.CUDAVersion, api.ResourceGPU)})
	}
	if written := writtenRecords(new(corev1.Pod), in.Pod); d.Outcome != Denied && d.Outcome != Mutated && len(written) > 0 {
		return denial(api.Violation{Rule: rulename.Undone, Reason: "the pod says of itself what gpuslice planned", Detail: fmt.Sprintf(
			"it has no slice, and gpuslice's mutating webhook, which removes this, was not called; remove %s", message.JoinNames(written))})
	}
	switch d.Outcome {
	case DevicesHidden:
		return leaveUnchanged(d.UnchangedReason)
	case Mutated:
	default:
		return d
	}
	return denial(api.Violation{Rule: rulename.Undone, Reason: "the pod requests a slice and was not given one", Detail: fmt.Sprintf(
		"gpuslice's mutating webhook was not called, its answer was lost, or another webhook changed the pod after it; create the pod again, and if it is denied again tell those who run the cluster (policy %s; gpuslice doctor lists webhooks)",
		in.Policy.Name)})
}
