package request

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// spell keeps requests in other systems' words: by container if policy accepts the system. Accepted words of the pod
// have the meaning of its labels. Records of a system that is no longer accepted are not read.
func (r *requestReader) spell(found []spellings.Found, labels *labelRequest) (accepted []string) {
	r.spelled = map[string]spellings.Found{}
	for _, f := range found {
		switch {
		case r.offered(f), f.Selected && !RequestsGPUs(&r.pod.Spec, r.pools):
		case !r.accepts(f.Spelling):
			r.unaccepted = append(r.unaccepted, f)
			if r.recorded != nil && slices.Contains(r.recorded.Spellings, f.Spelling.Name) {
				r.recorded = nil
			}
		case f.Err != nil:
			labels.explicit = true // it requests something that cannot be read
			r.denyIn(f.Container, r.spelledField(f), "spelling of "+f.Spelling.System, inContainer(f.Container, f.Err.Error()))
		default:
			r.accept(f, labels)
			accepted = append(accepted, f.Spelling.Name)
		}
	}
	slices.Sort(accepted)
	return slices.Compact(accepted)
}

// accepts reports whether policy accepts the system. A request with too many names to be read may be of any.
func (r *requestReader) accepts(s spellings.Spelling) bool {
	return slices.Contains(r.policy.Accept, s.Name) || s.Name == "" && len(r.policy.Accept) > 0
}

// offered reports whether a pool offers one of the resources: it is a GPU's name here, whoever else reads it.
func (r *requestReader) offered(f spellings.Found) bool {
	for name := range f.Resources {
		if pools.IsGPU(name, r.pools) {
			return true
		}
	}
	return false
}

func (r *requestReader) accept(f spellings.Found, labels *labelRequest) {
	labels.explicit = true
	if other, twice := r.spelled[f.Container]; twice {
		r.denyIn(f.Container, r.spelledField(f), "two spellings for one slice", inContainer(f.Container, fmt.Sprintf("%s and %s each request it; write one of them",
			strings.Join(other.Names, ", "), strings.Join(f.Names, ", "))))
		return
	}
	r.spelled[f.Container] = f
	if len(f.Unread) > 0 {
		r.warnings = append(r.warnings, inContainer(f.Container, message.ShortList(f.Unread)+" has no form in gpuslice and no effect"))
	}
	if slices.Contains(f.Spelling.Schedulers, r.pod.Spec.SchedulerName) {
		r.warnings = append(r.warnings, fmt.Sprintf("schedulerName %s: the pod waits for the scheduler of %s; remove it where %s does not run",
			r.pod.Spec.SchedulerName, f.Spelling.System, f.Spelling.System))
	}
	labels.strategy = onlyOne(r, "two strategies for one pod", f, labels.strategy, f.Part.Strategy)
	if f.Container != "" {
		return
	}
	labels.container = onlyOne(r, "two containers for one slice", f, labels.container, f.Part.Container)
	labels.containerFrom = cmp.Or(labels.containerFrom, f.ContainerFrom)
	r.agree(&labels.size, labels.sizeFrom, f, "")
	labels.sizeFrom = cmp.Or(labels.sizeFrom, strings.Join(f.Names, " and "))
}

// onlyOne is the pod's value, which found may repeat, or found's value alone.
func onlyOne[T ~string](r *requestReader, reason string, found spellings.Found, said, says T) T {
	if said != "" && says != "" && said != says {
		r.denyIn(found.Container, r.spelledField(found), reason, inContainer(found.Container, fmt.Sprintf("the pod says %s and, by %s, %s; write one of them",
			message.Quote(string(said)), strings.Join(found.Names, " and "), message.Quote(string(says)))))
	}
	return cmp.Or(said, says)
}

// spelledIn gives a container its request in an accepted system's words.
func (r *requestReader) spelledIn(g gpuContainer, out *api.ContainerRequest, source string, req *api.Request) {
	f, own := r.spelled[g.name]
	gpus := cmp.Or(f.Part.GPUs, r.spelled[""].Part.GPUs)
	switch {
	case gpus > 0 && g.resource.count > 0 && g.resource.count != gpus:
		r.denyIn(g.name, ResourceField(g.resource.list, g.resource.name), "two numbers of GPUs", fmt.Sprintf("container %q requests %s: %d, and %d in the words of %s; write one of them",
			g.name, g.resource.name, g.resource.count, gpus, cmp.Or(f.Spelling.System, r.spelled[""].Spelling.System)))
	case gpus > 0 && g.resource.fraction.Zero():
		out.GPUs = gpus
	}
	if !own {
		return
	}
	req.Explicit = true
	out.Foreign = f.Resources
	r.agree(&out.Size, source, f, g.name)
}

// agree adds the found request to a size from a source, which it may repeat and not contradict.
func (r *requestReader) agree(into *api.Size, source string, f spellings.Found, container string) {
	found := f.Part.Size
	says, finds := "", ""
	switch {
	case into.Named() && found.Named() && !api.SameSize(*into, found):
		says, finds = into.Describe(), found.Describe()
	case into.Compute != 0 && found.Compute != 0 && into.Compute != found.Compute:
		says, finds = fmt.Sprintf("compute %d", into.Compute), fmt.Sprintf("compute %d", found.Compute)
	case into.MemoryLimit != 0 && found.MemoryLimit != 0 && into.MemoryLimit != found.MemoryLimit:
		says, finds = fmt.Sprintf("memory limit %q", into.MemoryLimit), fmt.Sprintf("memory limit %q", found.MemoryLimit)
	}
	if says != "" {
		r.denyIn(f.Container, r.spelledField(f), "two sizes for one slice", inContainer(container, fmt.Sprintf("%s says %s, and %s %s; write one of them",
			source, says, strings.Join(f.Names, " and "), finds)))
		return
	}
	if found.Named() {
		into.Memory, into.Fraction, into.Class = found.Memory, found.Fraction, ""
	}
	into.MemoryLimit = cmp.Or(into.MemoryLimit, found.MemoryLimit)
	into.Compute = cmp.Or(into.Compute, found.Compute)
}

// spelledField is the path of the first name that a request in another system's words has, in its container if it has one.
func (r *requestReader) spelledField(f spellings.Found) string {
	switch {
	case f.Container != "":
		return "resources"
	case len(f.Names) == 0:
		return ""
	}
	return r.fieldOf(f.Names[0])
}

func inContainer(name, text string) string {
	if name == "" {
		return text
	}
	return fmt.Sprintf("container %s: %s", message.Quote(name), text)
}
