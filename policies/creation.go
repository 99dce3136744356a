package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/plan"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// creation is a new pod on its way to a slice. Each step returns its decision, or one without an outcome where the next
// step is to decide.
type creation struct {
	in       Input // its Pod is the author's alone once the request is read
	req      api.Request
	unread   []api.Violation   // what of the request could not be read
	brought  []string          // warnings about what the pod brought that is ours
	asked    []spellings.Found // requests in the words of systems that the policy does not accept
	warnings []string
}

// decideSlice gives the pod the slices that it requests, if it requests any: the first step that knows the answer ends
// the walk.
func decideSlice(in Input) Decision {
	c := &creation{in: in}
	for _, step := range []func(*creation) Decision{
		(*creation).denyReportRequest,
		(*creation).checkSize,
		(*creation).checkNames,
		(*creation).readRequest,
		(*creation).optOut,
		(*creation).leaveWithoutRequest,
		(*creation).severalGPUs,
		(*creation).checkRequest,
		(*creation).plan,
	} {
		if d := step(c); d.Outcome != "" {
			d.Warnings = append(c.warnings, d.Warnings...)
			if c.asked != nil {
				d.Warnings = append(d.Warnings, spellings.Hints(c.asked, d.Outcome == Unchanged)...)
			}
			return d
		}
	}
	return leaveUnchanged(whyNoGPU)
}

// denyReportRequest denies what is no pod to run but a request for a report, and is to be created all the same. A dry-run create
// of one is answered by a denial that holds the report, which needs no right but to create pods: the webhook does that, since
// nobody here knows what is a dry run.
func (c *creation) denyReportRequest() Decision {
	report, requested := c.in.Pod.Annotations[api.AnnotationReport]
	if !requested {
		return Decision{}
	}
	return denial(*request.Invalid("a question and no pod", fmt.Sprintf(
		"the annotation %s: %s is answered to a dry-run only; use gpuslice quota or gpuslice policy show, or remove it from a pod that is to run",
		api.AnnotationReport, message.Quote(report))))
}

func (c *creation) checkSize() Decision {
	v := tooManyContainers(c.in.Pod)
	switch {
	case v == nil:
		return Decision{}
	case !request.TouchesGPU(c.in.Pod, c.in.Pools):
		return leaveUnchanged(whyNoGPU)
	}
	return denial(*v)
}

func tooManyContainers(pod *corev1.Pod) *api.Violation {
	n := 0
	for range podspec.Containers(&pod.Spec) { // ours left out: they must not make a pod too large on a second pass
		n++
	}
	if n <= MaxContainers {
		return nil
	}
	return &api.Violation{Rule: api.RuleSize, Reason: "too many containers", Detail: fmt.Sprintf("the pod has %d; a pod with GPUs may have %d", n, MaxContainers)}
}

// checkNames denies a container of the author's own under our names where something requests a slice: what is ours is written
// anew, so it would vanish from the pod, or get a GPU that nobody looks at.
func (c *creation) checkNames() Decision {
	name, gpu := authorsUnderOurName(&c.in.Pod.Spec, c.in.Pools)
	if name == "" || request.SliceLabel(c.in.Pod) == "" && !(gpu && c.in.Policy.Mode == modes.Transparent) {
		return Decision{}
	}
	return denial(*request.Invalid("reserved name", fmt.Sprintf("container %q: names that begin with %s belong to gpuslice; give it another name", name, podspec.Prefix)))
}

// readRequest reads what the pod requests. A pod may bring what an earlier pass wrote, or a copied one: that is taken
// off first.
func (c *creation) readRequest() Decision {
	c.in.Guard = c.in.Guard.Mirrored(guardImages(c.in.Pod))
	named, given := request.WithoutDefaults(c.in.Pod, c.in.LimitRanges, c.in.Pools)
	bare, recorded, brought := promise.Revert(named, c.in.Pools)
	c.in.Pod, c.brought = bare, append(given, brought...)
	var before *api.Request
	if recorded != nil {
		before = &recorded.Request
	}
	c.req, c.asked, c.warnings, c.unread = request.Read(bare, c.in.Policy, c.in.Pools, before)
	if recorded != nil && !c.req.Explicit && request.RequestsGPUs(&named.Spec, c.in.Pools) && !request.RequestsGPUs(&bare.Spec, c.in.Pools) {
		// Nothing takes a GPU off a pod that gets no slice, whatever a promise records that may be forged.
		c.in.Pod = withResources(bare, named)
		c.req, c.asked, c.warnings, c.unread = request.Read(c.in.Pod, c.in.Policy, c.in.Pools, nil)
	}
	return Decision{}
}

// withResources returns pod with what the containers of another one request.
func withResources(pod, of *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for c := range podspec.Containers(&pod.Spec) {
		if same, _ := podspec.ContainerNamed(&of.Spec, c.Name); same != nil {
			same.Resources.DeepCopyInto(&c.Resources)
		}
	}
	return pod
}

func (c *creation) optOut() Decision {
	p := c.in.Policy
	switch {
	case c.req.Share != api.ShareDisabled || c.req.Explicit:
		return Decision{}
	case p.OptOut || p.Mode == modes.OptIn || len(c.req.Containers) == 0:
		return leaveUnchanged(whyOptedOut)
	}
	return denial(api.Violation{Rule: api.RulePolicy, Reason: "opting out is not allowed", Detail: fmt.Sprintf(
		"%s: %q is for policies with optOut: true, and %s is not one; remove the label", api.LabelShare, api.ShareDisabled, p.Name)})
}

// leaveWithoutRequest leaves the pods alone that neither request a slice nor are given one by policy.
func (c *creation) leaveWithoutRequest() Decision {
	in, silent := &c.in, len(c.req.Containers) == 0
	switch {
	case c.req.Explicit:
		return Decision{}
	case silent && !request.TouchesGPU(in.Pod, in.Pools):
		if c.asked != nil {
			return leaveUnchanged(whyForeign)
		}
		return leaveUnchanged(whyNoGPU)
	case in.Policy.Mode == modes.OptIn && !request.RequestsFraction(in.Pod, in.Pools):
		d := leaveUnchanged(whyNotRequested)
		d.Warnings = request.Unrequested(in.Pod, in.Pools)
		return d
	case silent && len(c.unread) == 0:
		return leaveUnchanged(whyNoGPU)
	}
	return Decision{}
}

// checkRequest denies what could not be read and what reaches out of a slice, all at once.
func (c *creation) checkRequest() Decision {
	c.warnings = append(c.brought, c.warnings...) // only a pod that is to get a slice has its author told
	if found := append(c.unread, rules.Find(subjectOf(&c.in), true)...); len(found) > 0 {
		return denial(found...)
	}
	return Decision{}
}

func (c *creation) plan() Decision {
	p := plan.Plan(c.in.planning(), c.req)
	d := Decision{Outcome: Mutated, Promise: p.Promise, Violations: p.Violations, Warnings: p.Warnings, Candidates: p.Candidates}
	if p.Promise == nil {
		d.Outcome = Denied
		return d
	}
	d.Warnings = append(d.Warnings, request.UnreadVariables(c.in.Pod)...)
	d.Planned = &p.Promise.Planned
	return d
}

// subjectOf is what the tamper rules may know of the pod.
func subjectOf(in *Input) rules.Subject {
	return rules.Subject{Pod: in.Pod, Pools: in.Pools, MPS: in.Policy.MPS}
}
