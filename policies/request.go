package policies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Request is what a pod asks of its GPUs, whatever the spelling. It is recorded in the Promise, since the rewritten
// pod no longer says it.
type Request struct {
	Share      string             `json:"share,omitempty"`
	Strategy   StrategyName       `json:"strategy,omitempty"`
	Framework  string             `json:"framework,omitempty"`
	Explicit   bool               `json:"explicit,omitempty"` // the pod itself asks; else policy gives it a slice unasked
	Containers []ContainerRequest `json:"containers,omitempty"`
}

// ContainerRequest is what one container asks. Only containers that get GPUs have one, init containers first.
type ContainerRequest struct {
	Name     string `json:"name"`
	Resource string `json:"resource,omitempty"` // the GPU resource it named; empty: none
	GPUs     int64  `json:"gpus"`               // whole units of it; 1 where a fraction or no resource was written
	Quantity string `json:"quantity,omitempty"` // the fraction as written, where it was one
	Ask      Ask    `json:"ask,omitzero"`
}

// resourceOf returns the GPU resource that a container asked for by name, or "".
func (r Request) resourceOf(container string) string {
	for _, c := range r.Containers {
		if c.Name == container {
			return c.Resource
		}
	}
	return ""
}

// readRequest reads what a pod asks for, and everything that is wrong with it: what could be read is returned all the
// same. recorded is the Request of an earlier pass over this pod, or of the pod it was copied from; nil: there is none.
func readRequest(pod *corev1.Pod, policy *Policy, pools []Pool, recorded *Request) (req Request, warnings []string, violations []Violation) {
	r := requestReader{pod: pod, policy: policy, pools: pools, recorded: recorded}
	req = r.read()
	return req, r.warnings, r.violations
}

// requestReader collects what a pod asks, and everything that is wrong with it.
type requestReader struct {
	pod        *corev1.Pod
	policy     *Policy
	pools      []Pool
	recorded   *Request
	violations []Violation
	warnings   []string
}

func (r *requestReader) read() Request {
	labels := r.labels()
	req := Request{
		Share:     labels.share,
		Strategy:  labels.strategy,
		Framework: labels.framework,
		Explicit:  labels.explicit,
	}
	before := len(r.violations)
	named := r.annotation()
	req.Explicit = req.Explicit || len(named) > 0 || len(r.violations) > before
	if r.recorded != nil && labels.share != ShareDisabled { // the author's label is newer than what was recorded
		req.Explicit = req.Explicit || r.recorded.Explicit
	}
	for _, c := range r.gpuContainers(labels, named, req.Explicit) {
		req.Containers = append(req.Containers, r.container(c, labels.ask, named, &req))
	}
	return req
}

// gpuContainers returns the containers that get GPUs: those that ask for one, those that the annotation names, or,
// where none asks and the pod wants a slice, the one that a label names or the only one there is.
func (r *requestReader) gpuContainers(labels labelRequest, named map[string]Ask, explicit bool) []gpuContainer {
	var found, silent []gpuContainer
	for c, init := range podContainers(&r.pod.Spec) {
		resource, v := gpuResourceOf(c, r.pools)
		if v != nil {
			r.violations = append(r.violations, *v)
			continue
		}
		_, isNamed := named[c.Name]
		switch g := (gpuContainer{c.Name, resource, init}); {
		case resource.Name != "" || isNamed:
			found = append(found, g)
		default:
			silent = append(silent, g)
		}
	}
	if labels.container != "" {
		return r.namedContainer(labels.container, found, silent)
	}
	if len(found) > 0 || !explicit || len(r.violations) > 0 {
		return found
	}
	apps := slices.DeleteFunc(silent, func(g gpuContainer) bool { return g.init })
	if len(apps) != 1 {
		r.deny("no container asks for a GPU", fmt.Sprintf("the pod asks for a slice, but which of its containers gets it? There are %s; "+
			"write %s: %q, or ask for nvidia.com/gpu: 1 in the one that needs it", quotedNames(apps), LabelContainer, firstName(apps)))
		return nil
	}
	return apps
}

// namedContainer resolves the label gpuslice.dev/container, which decides only where no container asks by itself.
func (r *requestReader) namedContainer(name string, found, silent []gpuContainer) []gpuContainer {
	is := func(g gpuContainer) bool { return g.name == name }
	switch i := slices.IndexFunc(silent, is); {
	case slices.ContainsFunc(found, is):
		return found
	case i < 0:
		r.deny("label "+LabelContainer, fmt.Sprintf("%s is not a container of this pod; there are %s", quoteShort(name), quotedNames(append(found, silent...))))
	case len(found) > 0:
		r.deny("label "+LabelContainer, fmt.Sprintf("it names %q, but %s asks for a GPU; remove the label, or the GPU there", name, quotedNames(found)))
	default:
		return silent[i : i+1]
	}
	return nil
}

// container reads one container's ask: its part of the annotation, else the labels; an accepted foreign spelling has
// to agree with them.
func (r *requestReader) container(g gpuContainer, fromLabels Ask, named map[string]Ask, req *Request) ContainerRequest {
	out := ContainerRequest{Name: g.name, Resource: g.resource.Name, GPUs: max(g.resource.Count, 1), Ask: fromLabels}
	source := "the labels"
	if ask, ok := named[g.name]; ok {
		out.Ask, source = ask, "annotation "+AnnotationContainers
	}
	if !g.resource.Share.Zero() {
		out.Quantity = g.resource.Share.String()
	}
	r.recall(&out)
	ask, text, ok := r.foreign(g.resource)
	if !ok {
		return out
	}
	req.Explicit = true
	if out.Ask.sized() && !sameSize(out.Ask, ask) {
		r.deny("two sizes for one slice", fmt.Sprintf("container %q says %s and %s say %s; write one of them", g.name, text, source, out.Ask.describe()))
		return out
	}
	out.Ask.Memory, out.Ask.Fraction, out.Ask.Class = ask.Memory, ask.Fraction, ask.Class
	return out
}

// recall takes a container's request from what was recorded of the pod, where the container still asks what it did
// then. What the labels say, which are the author's, wins over what was recorded.
func (r *requestReader) recall(c *ContainerRequest) {
	if r.recorded == nil || c.Quantity != "" {
		return
	}
	for _, was := range r.recorded.Containers {
		if was.Name != c.Name || was.Resource != c.Resource || was.GPUs != c.GPUs {
			continue
		}
		c.Quantity = was.Quantity
		if c.Ask.sized() {
			continue
		}
		fromLabels := c.Ask
		c.Ask = was.Ask
		c.Ask.MemoryLimit = cmp.Or(fromLabels.MemoryLimit, was.Ask.MemoryLimit)
		c.Ask.Compute = cmp.Or(fromLabels.Compute, was.Ask.Compute)
	}
}

// foreign reads a spelling of another system, or denies a fraction that policy does not accept.
func (r *requestReader) foreign(res GPUResource) (Ask, string, bool) {
	for _, s := range Spellings() {
		ask, text, ok := s.Read(res)
		if !ok {
			continue
		}
		if !slices.Contains(r.policy.Accept, s.Name) {
			r.violations = append(r.violations, Violation{RulePolicy, "spelling not accepted", fmt.Sprintf(
				"%s is read only where policy accepts %q, and %s does not; write %s: 1 and the label %s: %q",
				text, s.Name, r.policy.Name, res.Name, LabelFraction, ask.Fraction)})
			return Ask{}, "", false
		}
		return ask, text, true
	}
	return Ask{}, "", false
}

func (r *requestReader) deny(reason, detail string) {
	r.violations = append(r.violations, *requestViolation(reason, detail))
}

// gpuContainer is a container that may get a GPU.
type gpuContainer struct {
	name     string
	resource GPUResource
	init     bool
}

func quotedNames(gs []gpuContainer) string {
	const most = 8
	var names []string
	for i, g := range gs {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(gs)-most))
			break
		}
		names = append(names, fmt.Sprintf("%q", g.name))
	}
	return strings.Join(names, ", ")
}

func firstName(gs []gpuContainer) string {
	if len(gs) == 0 {
		return ""
	}
	return gs[0].name
}
