package request

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Read reads a pod's request, and everything that is wrong with it: readable parts are returned all the same. recorded
// is the Request of an earlier pass over this pod, or of the pod it was copied from; nil: there is none. It also
// returns requests in the words of systems that the policy does not accept.
func Read(pod *corev1.Pod, policy *config.Policy, offered []pools.Pool,
	recorded *api.Request) (req api.Request, asked []spellings.Found, warnings []string, violations []api.Violation) {
	r := requestReader{pod: pod, policy: policy, pools: offered, recorded: recorded}
	labels := r.labels()
	own := labels.explicit
	if found := spellings.Find(r.pod, policy.MemoryUnits); found != nil {
		req.Spellings = r.spell(found, &labels)
	}
	req.Share, req.Strategy, req.Framework, req.Explicit = labels.share, labels.strategy, labels.framework, labels.explicit
	before := len(r.violations)
	var named map[string]api.Size
	if text, ok := pod.Annotations[api.AnnotationContainers]; ok {
		named = r.annotation(text)
	}
	own = own || len(named) > 0 || len(r.violations) > before
	req.Explicit = req.Explicit || own
	// The author's label is newer than the record, and the pools of the day decide which names are shares.
	if r.recorded != nil && labels.share != api.ShareDisabled && !slices.Equal(r.recorded.Spellings, []string{spellings.NameOfShares}) {
		req.Explicit = req.Explicit || r.recorded.Explicit
	}
	if slices.Contains(r.policy.Accept, spellings.NameOfShares) && r.namesShare() {
		req.Explicit, req.Spellings = true, append(req.Spellings, spellings.NameOfShares)
	}
	for _, c := range r.gpuContainers(labels, named, req.Explicit) {
		req.Containers = append(req.Containers, r.container(c, labels, named, &req))
	}
	if labels.share == api.ShareDisabled { // whatever another system's words say
		req.Explicit = own
	}
	return req, r.unaccepted, r.warnings, r.violations
}

// requestReader collects a pod's request, and everything that is wrong with it.
type requestReader struct {
	pod        *corev1.Pod
	policy     *config.Policy
	pools      []pools.Pool
	recorded   *api.Request
	violations []api.Violation
	warnings   []string

	spelled    map[string]spellings.Found // accepted, by container; "": by words of the pod
	unaccepted []spellings.Found
}

// gpuContainers returns the containers that get GPUs: those that request one, those that the annotation names, or,
// where none does and the pod wants a slice, the one that a label names or the only one there is.
func (r *requestReader) gpuContainers(labels labelRequest, named map[string]api.Size, explicit bool) []gpuContainer {
	var found, silent []gpuContainer
	for c, init := range podspec.Containers(&r.pod.Spec) {
		resource, v := gpuResourceOf(c, r.pools)
		if v != nil {
			r.violations = append(r.violations, *v)
			continue
		}
		_, isNamed := named[c.Name]
		_, isSpelled := r.spelled[c.Name]
		switch g := (gpuContainer{c.Name, resource, init}); {
		case resource.name != "" || isNamed || isSpelled:
			found = append(found, g)
		default:
			silent = append(silent, g)
		}
	}
	if labels.container != "" {
		return r.namedContainer(labels, found, silent)
	}
	if len(found) > 0 || !explicit || len(r.violations) > 0 {
		return found
	}
	apps := slices.DeleteFunc(silent, func(g gpuContainer) bool { return g.init })
	if r.spelled[""].Spelling.FirstContainer && len(apps) > 0 {
		return apps[:1]
	}
	if len(apps) != 1 {
		r.deny("spec.containers", "no container requests a GPU", fmt.Sprintf("the pod requests a slice, but which of its containers gets it? There are %s; "+
			"write %s: %q, or request nvidia.com/gpu: 1 in the one that needs it", quotedNames(apps), api.LabelContainer, firstName(apps)))
		return nil
	}
	return apps
}

// namedContainer resolves the label gpuslice.dev/container, which decides only where no container requests a GPU by itself.
func (r *requestReader) namedContainer(labels labelRequest, found, silent []gpuContainer) []gpuContainer {
	name := labels.container
	is := func(g gpuContainer) bool { return g.name == name }
	switch i := slices.IndexFunc(silent, is); {
	case slices.ContainsFunc(found, is):
		return found
	case i < 0:
		r.deny(r.fieldOf(strings.TrimPrefix(labels.containerFrom, "label ")), labels.containerFrom,
			fmt.Sprintf("%s is not a container of this pod; there are %s", message.Quote(name), quotedNames(append(found, silent...))))
	case len(found) > 0:
		r.deny(r.fieldOf(strings.TrimPrefix(labels.containerFrom, "label ")), labels.containerFrom,
			fmt.Sprintf("it names %q, but %s requests a GPU; remove the name, or the GPU there", name, quotedNames(found)))
	default:
		return silent[i : i+1]
	}
	return nil
}

// container reads one container's request: its part of the annotation, else the labels; an accepted foreign spelling has
// to agree with them.
func (r *requestReader) container(g gpuContainer, labels labelRequest, named map[string]api.Size, req *api.Request) api.ContainerRequest {
	out := api.ContainerRequest{Name: g.name, Resource: g.resource.name, GPUs: max(g.resource.count, 1), Size: labels.size}
	source := labels.sizeFrom
	if annotated, ok := named[g.name]; ok {
		out.Size, source = annotated, "annotation "+api.AnnotationContainers
	}
	fraction := g.resource.fraction
	if !fraction.Zero() {
		out.Quantity = fraction.String()
	}
	if len(r.spelled) > 0 {
		r.spelledIn(g, &out, source, req)
	}
	if r.recorded == nil {
		out.Threads = r.threads(&out)
	} else if out.Quantity == "" {
		r.recall(&out)
	}
	out.Size.Compute = cmp.Or(out.Size.Compute, out.Threads)
	if fraction.Zero() {
		return out
	}
	text := fmt.Sprintf("%s: %q", g.resource.name, quantity.GPUText(g.resource.amount))
	if !slices.Contains(r.policy.Accept, spellings.NameOfQuantities) {
		r.violations = append(r.violations, api.Violation{Rule: api.RulePolicy, Reason: "spelling not accepted",
			Container: g.name, Field: ResourceField(g.resource.list, g.resource.name), Detail: fmt.Sprintf(
				"%s is read only where policy accepts %q, and %s does not; write %s: 1 and the label %s: %q",
				text, spellings.NameOfQuantities, r.policy.Name, g.resource.name, api.LabelFraction, fraction)})
		return out
	}
	req.Explicit = true
	if out.Size.Named() && !api.SameSize(out.Size, api.Size{Fraction: fraction}) {
		r.denyIn(g.name, ResourceField(g.resource.list, g.resource.name), "two sizes for one slice",
			fmt.Sprintf("container %q says %s, and %s says %s; write one of them", g.name, text, source, out.Size.Describe()))
		return out
	}
	out.Size.Memory, out.Size.Fraction, out.Size.Class = 0, fraction, ""
	return out
}

// namesShare reports whether a container requests a resource that pools offer as shares under a name of its own.
func (r *requestReader) namesShare() bool {
	for c := range podspec.Containers(&r.pod.Spec) {
		for i := range r.pools {
			p := &r.pools[i]
			if q := c.Resources.Limits[corev1.ResourceName(p.Resource)]; p.Resource != api.ResourceGPU &&
				!q.IsZero() && strategies.Named(p.Strategy).Shared() {
				return true
			}
		}
	}
	return false
}

// threads is the share of compute in the container's own variable for MPS, if it is a number and nothing else sets a
// share. It is for pods without a record: in one of an earlier pass the variable is ours.
func (r *requestReader) threads(c *api.ContainerRequest) int {
	if c.Size.Compute > 0 {
		return 0
	}
	spec, _ := podspec.ContainerNamed(&r.pod.Spec, c.Name)
	i := podspec.VariableIndex(spec.Env, nvidia.EnvMPSThreads)
	if i < 0 {
		return 0
	}
	percent, err := parseBetween(spec.Env[i].Value, 1, 100)
	if err != nil {
		return 0
	}
	return percent
}

// recall takes a container's request from the pod's record, if its resources are unchanged since then. The labels,
// which are the author's, win over the record.
func (r *requestReader) recall(c *api.ContainerRequest) {
	for _, was := range r.recorded.Containers {
		if was.Name != c.Name || was.Resource != c.Resource || was.GPUs != c.GPUs {
			continue
		}
		c.Quantity, c.Threads = was.Quantity, was.Threads
		if c.Size.Named() {
			continue
		}
		fromLabels := c.Size
		c.Size = was.Size
		c.Size.MemoryLimit = cmp.Or(fromLabels.MemoryLimit, was.Size.MemoryLimit)
		c.Size.Compute = cmp.Or(fromLabels.Compute, was.Size.Compute)
	}
}

func (r *requestReader) deny(at, reason, detail string) {
	r.violations = append(r.violations, *Invalid(at, reason, detail))
}

// denyIn denies a field of a container; container "": of the pod.
func (r *requestReader) denyIn(container, at, reason, detail string) {
	r.deny(at, reason, detail)
	r.violations[len(r.violations)-1].Container = container
}

// fieldOf is the path of a label or annotation that says something in another system's words; "": of neither.
func (r *requestReader) fieldOf(name string) string {
	if _, labelled := r.pod.Labels[name]; labelled {
		return api.LabelField(name)
	}
	if _, annotated := r.pod.Annotations[name]; annotated {
		return api.AnnotationField(name)
	}
	return ""
}

// gpuContainer is a container that may get a GPU.
type gpuContainer struct {
	name     string
	resource gpuResource
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
