package policies

import (
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/rawpod"
)

// Why pods are left unchanged: stable words for metrics.
const (
	whyNoPolicy     = "no policy"
	whyOff          = "mode off"
	whyNoGPU        = "no GPU requested"
	whyNotRequested = "no slice requested"
	whyForeign      = "request of another system"
	whyOptedOut     = "share disabled"
	whyExclusive    = "several GPUs, left exclusive"
	whyMirror       = "mirror pod"
	whyNewer        = "as a newer version promised"
)

// MaxContainers bounds the containers of a pod that gets a slice.
const MaxContainers = 64

// Create decides a new pod as it was read, and returns the patch that applies the decision. Promises are signed with
// keys; a promise of a newer build, by rules that this one does not know, stays as it is.
func Create(in Input, raw rawpod.Raw, keys promise.Keys) (Decision, []jsonpatch.Operation) {
	if raw.Pod.Annotations[api.AnnotationPromise] != "" {
		// A newer build may have mutated it: both are called while one takes the other's place.
		there := *raw.Pod // the review's namespace is the one that counts; a pod may leave its own out
		there.Namespace = in.Namespace.Name
		if given := keys.PromiseOf(&there); given != nil && given.Newer() {
			return leaveUnchanged(whyNewer), nil
		}
	}
	in.Pod = raw.Pod
	d := Decide(in)
	if d.Promise != nil {
		keys.Sign(d.Promise)
	}
	after := d.Rewrite(raw.Pod)
	if after == raw.Pod {
		return d, nil
	}
	return d, podedit.Operations(raw.Text, raw.Pod, after)
}

// Decide answers one pod: left unchanged, rewritten under a Promise, or denied. It changes nothing it is given, does no
// I/O, and gives the same answer every time. Deciding its own output changes nothing.
func Decide(in Input) Decision {
	if metav1.HasAnnotation(in.Pod.ObjectMeta, corev1.MirrorPodAnnotationKey) { // the picture of a static pod, which runs already
		return leaveUnchanged(whyMirror)
	}
	if in.Policy.Off() {
		return in.settle(ungoverned(in))
	}
	d := decideGoverned(in)
	if d.Outcome != Unchanged {
		d.Warnings = append(d.Warnings, in.TenantNotes...)
	}
	return in.settle(d)
}

// changesPods reports whether a policy is in force which may change pods of the namespace.
func changesPods(in Input) bool {
	return !in.Policy.Off() && in.Policy.EnforcementMode != api.EnforceAudit
}

// ungoverned answers pods of namespaces without a policy: nothing is touched. A label of ours there is most likely a
// mistake, so its author gets a warning; and a policy that cannot be read never means "no limits".
func ungoverned(in Input) Decision {
	why := whyNoPolicy
	if in.Policy != nil {
		why = whyOff
	}
	if in.PolicyError != nil && request.TouchesGPU(in.Pod, in.Pools) {
		d := denial(api.Violation{Rule: api.RulePolicy, Reason: "the namespace's policy cannot be read", Detail: fmt.Sprintf(
			"%v; the cluster's administrators can fix it (gpuslice policy lint names every problem)", in.PolicyError)})
		d.IfEnforced = d.Outcome
		return d
	}
	d := leaveUnchanged(why)
	reason := fmt.Sprintf("no gpuslice policy governs namespace %q", in.Namespace.Name)
	if in.Policy != nil {
		reason = fmt.Sprintf("policy %s, which governs namespace %q, is off", in.Policy.Name, in.Namespace.Name)
	}
	if label := request.SliceLabel(in.Pod); label != "" {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%s %s has no effect: %s", request.LabelOrAnnotation(label), label, reason))
	}
	if request.RequestsFraction(in.Pod, nil) {
		d.Warnings = append(d.Warnings, "a fraction of a GPU is not read, and Kubernetes takes whole numbers only: "+reason)
	}
	return d
}

// decideUnsliced answers a pod that gets no slice, for d's reason: it may take no device that it did not request either.
func decideUnsliced(in *Input, d Decision) Decision {
	found := rules.Find(rules.Subject{Pod: in.Pod, Pools: in.Pools, MPS: in.Policy.MPS}, false)
	ours := func(c corev1.PodResourceClaim) bool { return writtenAnew(&c) }
	if slices.ContainsFunc(in.Pod.Spec.ResourceClaims, ours) { // nothing is removed here
		found = append(checkClaims(in, func(*corev1.PodResourceClaim) bool { return false }), found...)
	}
	if len(found) > 0 {
		return denial(found...)
	}
	return hideDevices(in, d)
}

func leaveUnchanged(why string) Decision {
	return Decision{Outcome: Unchanged, IfEnforced: Unchanged, UnchangedReason: why}
}

func denial(violations ...api.Violation) Decision {
	return Decision{Outcome: Denied, Violations: violations}
}
