package policies

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/rawpod"
)

// Why updates pass as they are: stable words for metrics.
const (
	whyUnchanged = "nothing to restore"
	whyNotRead   = "not read"
)

// Subresources by which a live pod changes where its spec cannot be updated.
const (
	ephemeralSubresource = "ephemeralcontainers" // kubectl debug adds containers
	resizeSubresource    = "resize"              // processor time and memory
)

// Change is an update of a live pod.
type Change struct {
	Old, New    []byte // the pod's JSON before and after
	Subresource string // by which it changes; "": by none
	// Ours reports whether gpuslice itself writes, which may record observed tiers and re-sign the same promise.
	Ours bool
}

// governedFunc returns the policy and facts of the pod's namespace, without the pod. An update reads them only if its
// answer depends on them: gpuslice's own fields stay also while no policy can be read.
type governedFunc func() (Input, error)

// concerning are the names of which an update that can matter to gpuslice has one.
var concerning = slices.Concat(rules.DeviceAnnotations(), records, []string{api.AnnotationPromise, api.LabelTier, nvidia.EnvVisibleDevices})

// Concerns reports whether the update can matter to gpuslice. It is the fast path past most updates of a cluster: it
// looks for names of gpuslice's, and parses nothing.
func (c Change) Concerns() bool {
	if c.Subresource != "" {
		return c.Subresource == ephemeralSubresource || c.Subresource == resizeSubresource
	}
	for _, name := range concerning {
		if bytes.Contains(c.Old, []byte(name)) || bytes.Contains(c.New, []byte(name)) {
			return true
		}
	}
	return slices.ContainsFunc(request.Labels(), func(label string) bool { // one that comes late has no effect
		return bytes.Contains(c.New, []byte(label)) && !bytes.Contains(c.Old, []byte(label))
	})
}

// Mutate decides an update of a live pod, and returns the patch that corrects it: in a pod with slices everything that
// is gpuslice's, in another one the devices that its containers may see, and no device for ephemeral containers that it
// adds. Nothing is decided again. Unreadable changes pass here, and Verify denies those that are too large to be read.
// Every change of a pod that is being deleted passes: an update must never block a finalizer, a scheduling gate or a
// deletion. An error means that the namespace could not be read.
func (c Change) Mutate(governed func() (Input, error)) (Decision, []jsonpatch.Operation, error) {
	old, updated, _, err := c.read()
	switch {
	case err != nil:
		return leaveUnchanged(whyNotRead), nil, nil
	case c.Subresource == ephemeralSubresource:
		return restored(updated, old.Pod, governed, hideFromEphemeral)
	case c.Subresource != "":
		return leaveUnchanged(whyUnchanged), nil, nil
	case !hasPromise(old.Pod):
		return restored(updated, c.writable(old.Pod, updated.Pod), governed, restoreDevices)
	}
	after, violations := podedit.Restore(c.writable(old.Pod, updated.Pod), updated.Pod)
	after, err = planImages(old.Pod, after, governed)
	if err != nil {
		return Decision{}, nil, err
	}
	patch := podedit.Operations(updated.Text, updated.Pod, after)
	if len(violations) == 0 {
		return restoredBy(patch), patch, nil
	}
	in, err := governed()
	if err != nil {
		return Decision{}, nil, err
	}
	in.Pod = updated.Pod
	d := in.Deny(violations...)
	if d.Outcome == Denied {
		patch = nil
	}
	return d, patch, nil // a change that another mode lets pass is corrected like any other
}

// Verify judges an update of a live pod as it is about to be stored, after Mutate.
func (c Change) Verify(governed func() (Input, error)) (Decision, error) {
	old, updated, unread, err := c.read()
	switch {
	case unread != nil && !c.Ours:
		// The API server calls for changes of gpuslice's own fields, and for none of a pod that is being deleted.
		in, err := governed()
		if err != nil {
			return Decision{}, err
		}
		return in.Deny(*unread), nil
	case err != nil:
		return leaveUnchanged(whyNotRead), nil
	}
	var in Input
	var found, denied []api.Violation
	var warnings []string
	switch c.Subresource {
	case ephemeralSubresource:
		if in, err = governed(); err != nil {
			return Decision{}, err
		}
		in.Pod = updated.Pod
		found = checkEphemeral(in, old.Pod)
	case resizeSubresource:
		found = checkResize(old.Pod, updated.Pod)
	default:
		before, err := withPlannedImages(c.writable(old.Pod, updated.Pod), updated.Pod, governed)
		if err != nil {
			return Decision{}, err
		}
		found = checkUpdate(before, updated.Pod)
		if updated.Pod.DeletionTimestamp == nil { // else it starts no container any more
			found = append(found, rules.AddedDevices(old.Pod, updated.Pod)...)
		}
		if denied, warnings, err = checkImages(old.Pod, updated.Pod, governed); err != nil {
			return Decision{}, err
		}
		found = append(found, denied...)
	}
	if len(found) == 0 {
		d := leaveUnchanged(whyUnchanged)
		d.Warnings = warnings
		return d, nil
	}
	if in, err = governed(); err != nil {
		return Decision{}, err
	}
	in.Pod = updated.Pod
	return in.Deny(found...), nil
}

// restored puts right, by policy, an update of a pod that has no promise or changes by a subresource.
func restored(updated rawpod.Raw, old *corev1.Pod, governed governedFunc,
	restore func(in Input, old *corev1.Pod) *corev1.Pod) (Decision, []jsonpatch.Operation, error) {
	in, err := governed()
	if err != nil {
		return Decision{}, nil, err
	}
	in.Pod = updated.Pod
	patch := podedit.Operations(updated.Text, updated.Pod, restore(in, old))
	d := restoredBy(patch)
	if changesPods(in) {
		d.Warnings = lateLabels(old, updated.Pod)
	}
	return d, patch, nil
}

// lateLabels warns of labels by which a slice is requested, and which an update adds to a live pod without one.
func lateLabels(old, updated *corev1.Pod) (warnings []string) {
	if hasPromise(old) || updated.DeletionTimestamp != nil {
		return nil
	}
	for _, name := range request.Labels() {
		_, before := old.Labels[name]
		if _, now := updated.Labels[name]; before || !now {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("label %s has no effect on a live pod: create the pod again with it", name))
	}
	return warnings
}

// restoredBy is the decision of an update that the patch puts right.
func restoredBy(patch []jsonpatch.Operation) Decision {
	if len(patch) == 0 {
		return leaveUnchanged(whyUnchanged)
	}
	return Decision{Outcome: Mutated, IfEnforced: Mutated}
}

// errBeyondBounds is the error of a pod that exceeds the bounds on parsed input.
var errBeyondBounds = errors.New("the pod is beyond the bounds of what is read")

// read returns the pod before and after, or an error where one of them cannot be read, with a violation where it is beyond bounds.
func (c Change) read() (old, updated rawpod.Raw, unread *api.Violation, err error) {
	for _, side := range []struct {
		raw []byte
		pod *rawpod.Raw
	}{{c.Old, &old}, {c.New, &updated}} {
		read, violation, err := rawpod.Decode(side.raw)
		switch {
		case violation != nil:
			return old, updated, violation, errBeyondBounds
		case err != nil:
			return old, updated, nil, err
		}
		*side.pod = read
	}
	return old, updated, nil, nil
}

// writable is the old pod with the writer's permitted changes to gpuslice's fields: gpuslice itself records observed
// tiers, and signs the same words with another key; nobody else writes anything.
func (c Change) writable(old, updated *corev1.Pod) *corev1.Pod {
	if !c.Ours {
		return old
	}
	out := old.DeepCopy()
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	for _, name := range []string{api.AnnotationObserved, api.AnnotationSummary} {
		delete(out.Annotations, name)
		if text, ok := updated.Annotations[name]; ok {
			out.Annotations[name] = text
		}
	}
	if signed := updated.Annotations[api.AnnotationPromise]; hasPromise(old) &&
		promise.Unsigned(signed) == promise.Unsigned(old.Annotations[api.AnnotationPromise]) {
		out.Annotations[api.AnnotationPromise] = signed
	}
	return out
}

// checkUpdate denies an update that would change gpuslice's fields on a pod, or give a pod a Promise that was not
// created with one. A pod that is being deleted may change in every way: nothing may block its deletion.
func checkUpdate(old, updated *corev1.Pod) []api.Violation {
	if updated.DeletionTimestamp != nil {
		return nil
	}
	if !hasPromise(old) && hasPromise(updated) {
		return []api.Violation{request.Immutable(api.AnnotationField(api.AnnotationPromise), "annotation "+api.AnnotationPromise, "absent", "only gpuslice may set it")}
	}
	if written := writtenRecords(old, updated); !hasPromise(old) && len(written) > 0 {
		return []api.Violation{request.Immutable(metadataField(written[0]), written[0], "absent", "only gpuslice may set it")}
	}
	restored, violations := podedit.Restore(old, updated)
	paths := podedit.ChangedPaths(updated, restored)
	if len(paths) == 0 {
		return violations
	}
	v := api.Violation{Rule: api.RuleImmutable, Reason: "what belongs to gpuslice cannot change on a live pod", Detail: fmt.Sprintf(
		"%s; leave it out of the change, or delete the pod and create it again", message.ShortList(paths))}
	v.Container, v.Field = fieldOfChange(paths[0])
	return append(violations, v)
}
