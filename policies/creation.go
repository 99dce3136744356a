package policies

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/plan"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/policies/podedit"
)

// creation is a new pod on its way to a slice. Each step returns its decision, or one without an outcome where the next
// step is to decide.
type creation struct {
	in       Input // its Pod is the author's alone once the request is read
	req      api.Request
	unread   []api.Violation   // unreadable parts of the request
	brought  []string          // warnings about gpuslice's own fields in the author's pod
	copied   string            // the pod was copied without the labels that requested its slice; "": it was not
	asked    []spellings.Found // requests in the words of systems that the policy does not accept
	warnings []string
}

// decideGoverned answers a pod under a policy that is on, with the slices that it requests, if it requests any: the first
// step that knows the answer ends the walk.
func decideGoverned(in Input) (d Decision) {
	if found := checkClaims(&in, writtenAnew); len(found) > 0 {
		return denial(found...)
	}
	c := &creation{in: in}
	for _, step := range []func(*creation) Decision{
		(*creation).denyReportRequest,
		(*creation).checkSize,
		(*creation).checkNames,
		(*creation).readRequest,
		(*creation).leaveWithoutRequest,
		(*creation).severalGPUs,
		(*creation).checkRequest,
		(*creation).plan,
	} {
		if d = step(c); d.Outcome != "" {
			break
		}
	}
	if d.Outcome == "" {
		d = leaveUnchanged(whyNoGPU)
	}
	d.Warnings = append(c.warnings, d.Warnings...)
	if c.asked != nil {
		d.Warnings = append(d.Warnings, spellings.Hints(c.asked, d.Outcome == Unchanged, d.Outcome == Mutated)...)
	}
	if d.Outcome == Unchanged {
		return decideUnsliced(&in, d)
	}
	return d
}

// denyReportRequest denies the creation of a pod that is not to run but requests a report. The webhook answers a
// dry-run create of one by a denial that holds the report, which needs no right but to create pods; this package does
// not know what is a dry run.
func (c *creation) denyReportRequest() Decision {
	report, requested := c.in.Pod.Annotations[api.AnnotationReport]
	if !requested {
		return Decision{}
	}
	return denial(*request.Invalid(api.AnnotationField(api.AnnotationReport), "report request outside a dry run", fmt.Sprintf(
		"the annotation %s: %s is answered to a dry-run only; use gpuslice quota, gpuslice policy show or gpuslice explain, or remove it from a pod that is to run",
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
	return &api.Violation{Rule: api.RuleSize, Reason: "too many containers", Field: "spec.containers",
		Detail: fmt.Sprintf("the pod has %d; a pod with GPUs may have %d", n, MaxContainers)}
}

// checkNames denies a container of the author's own under our names if something requests a slice: those containers are
// rewritten, so it would vanish from the pod, or get a GPU that nothing watches. Check, guard and recorders among the init
// containers may come from a copied pod, and pass; if no other container requests a GPU and they do, they are the author's own.
func (c *creation) checkNames() Decision {
	spec := &c.in.Pod.Spec
	requests := func(container *corev1.Container) bool { return request.RequestsGPU(container, c.in.Pools) }
	others := false
	for container := range podspec.Containers(spec) {
		others = others || requests(container)
	}
	for i, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		isInit := i == 0
		for j := range list {
			container := &list[j]
			if !podspec.IsOurs(container.Name) {
				continue
			}
			copied := isInit && (container.Name == limits.CheckContainer || container.Name == limits.GuardContainer ||
				strings.HasPrefix(container.Name, limits.RecordContainer))
			if copied && (others || !requests(container)) {
				continue
			}
			if request.SliceLabel(c.in.Pod) != "" || requests(container) && c.in.Policy.Mode == modes.Transparent {
				return denial(api.Violation{Rule: api.RuleRequest, Container: container.Name, Field: "name", Reason: "reserved name",
					Detail: fmt.Sprintf("container %q: names that begin with %s belong to gpuslice; give it another name", container.Name, podspec.Prefix)})
			}
		}
	}
	return Decision{}
}

// readRequest reads the pod's request. A pod may bring an earlier pass's edits, or copied ones: they are removed first.
func (c *creation) readRequest() Decision {
	if guard := guardContainers(c.in.Pod); len(guard) > 0 {
		images := make([]string, len(guard))
		for i, container := range guard {
			images[i] = container.Image
		}
		c.in.Guard, c.copied = c.in.Guard.Mirrored(images), copiedWithoutLabels(c.in.Pod)
	}
	named, given := request.WithoutDefaults(c.in.Pod, c.in.LimitRanges, c.in.Pools)
	bare, recorded, brought := podedit.Revert(named, c.in.Pools)
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

// withResources returns pod with the resource requests of another pod's containers.
func withResources(pod, of *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for c := range podspec.Containers(&pod.Spec) {
		if same, _ := podspec.ContainerNamed(&of.Spec, c.Name); same != nil {
			same.Resources.DeepCopyInto(&c.Resources)
		}
	}
	return pod
}

// leaveWithoutRequest leaves the pods alone that neither request a slice nor are given one by policy, and those that opt out of it.
func (c *creation) leaveWithoutRequest() Decision {
	in, p, silent := &c.in, c.in.Policy, len(c.req.Containers) == 0
	switch {
	case c.req.Explicit:
		return Decision{}
	case c.req.Share == api.ShareDisabled && (p.OptOut || p.Mode == modes.OptIn || silent):
		return leaveUnchanged(whyOptedOut)
	case c.req.Share == api.ShareDisabled:
		return denial(api.Violation{Rule: api.RulePolicy, Reason: "opting out is not allowed",
			Field: api.LabelField(api.LabelShare), Detail: fmt.Sprintf(
				"%s: %q is for policies with optOut: true, and %s is not one; remove the label", api.LabelShare, api.ShareDisabled, p.Name)})
	case silent && !request.TouchesGPU(in.Pod, in.Pools):
		if c.asked != nil {
			return leaveUnchanged(whyForeign)
		}
		d := leaveUnchanged(whyNoGPU)
		d.Warnings = request.Unoffered(in.Pod, in.Pools, in.Resources, p.Strategies)
		return d
	case p.Mode == modes.OptIn && !request.RequestsFraction(in.Pod, in.Pools):
		d := leaveUnchanged(whyNotRequested)
		if c.copied != "" {
			d.Warnings = []string{c.copied}
			return d
		}
		d.Warnings = append(request.Unrequested(in.Pod, in.Pools, p.Strategies), request.Unoffered(in.Pod, in.Pools, in.Resources, p.Strategies)...)
		return d
	case silent && len(c.unread) == 0:
		return leaveUnchanged(whyNoGPU)
	}
	return Decision{}
}

// checkRequest denies unreadable requests and ways out of a slice, all at once.
func (c *creation) checkRequest() Decision {
	c.warnings = append(c.brought, c.warnings...) // only authors of pods that are to get a slice are warned
	if found := append(c.unread, rules.Find(rules.Subject{Pod: c.in.Pod, Pools: c.in.Pools, MPS: c.in.Policy.MPS}, true)...); len(found) > 0 {
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
	d.Warnings = append(d.Warnings, c.besideSlice(p.Promise)...)
	d.Planned = &p.Promise.Planned
	return d
}
