package plan

import (
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
)

// historyStep is what a size from a history is rounded up to: few sizes fill pools and claim templates better than many.
const historyStep = 256

// defaultSlice is policy's default slice for a container, with the size from its workload's history where policy takes it from there,
// and what that rests on.
func defaultSlice(in *Input, c api.ContainerRequest) (spec config.SliceSpec, sizedBy string) {
	spec = *in.Policy.DefaultSlice
	h := spec.FromHistory
	if h == nil {
		return spec, ""
	}
	owner, why := advice.OwnerOf(in.Pod), "nothing is recommended"
	r := recommended(in, owner, c.Name)
	if r != nil {
		spec.Memory, why = r.Size(h.Coverage)
	}
	if spec.Memory == 0 {
		spec.Memory = h.Otherwise
		sizedBy = fmt.Sprintf("fromHistory.otherwise of the policy, for %s: %s", owner, why)
	} else {
		spec.Memory = (spec.Memory + historyStep - 1) / historyStep * historyStep
		sizedBy = fmt.Sprintf("recommended for %s from %.0f hours of history (coverage %d%%, %s)", owner, r.Hours, h.Coverage, r.Verdict)
	}
	bounded := withinLimits(in.Policy, spec.Memory, c.GPUs)
	if bounded != spec.Memory {
		sizedBy += fmt.Sprintf("; %s, held to %s by policy's limits", spec.Memory, bounded)
		spec.Memory = bounded
	}
	spec.MemoryLimit = burstWithin(in.Policy, spec.Memory, spec.MemoryLimit)
	return spec, sizedBy
}

// recommended is what is recommended for a container of the pod; nil: nothing.
func recommended(in *Input, owner advice.Owner, container string) *advice.Recommendation {
	return in.Recommended[advice.Container{Namespace: in.Namespace.Name, Owner: owner, Container: container}]
}

// withinLimits is the size that policy's limits and quota leave of one that nobody requested. What other pods hold of the quota is
// not known here.
func withinLimits(p *config.Policy, size quantity.MiB, gpus int64) quantity.MiB {
	size = max(size, smallestSlice(p, gpus))
	for _, m := range append(limitsOfPod(p), p.Limits.PerContainer.Memory) {
		if m > 0 {
			size = min(size, m/quantity.MiB(max(gpus, 1)))
		}
	}
	return size
}

// limitsOfPod are the limits of a pod's memory by policy's limits and quota; 0: none, or a quota that denies the pod anyway.
func limitsOfPod(p *config.Policy) []quantity.MiB {
	most := []quantity.MiB{p.Limits.PerPod.Memory}
	for _, limit := range p.QuotaFor("").Limits {
		if limit.Scope.Pool+limit.Scope.Class == "" && limit.Limits.Memory != nil {
			most = append(most, *limit.Limits.Memory)
		}
	}
	return most
}

// shareWithinPod holds the sizes from the history to what policy leaves of a pod, at each moment of its life: while an init container
// runs beside the sidecars before it, and while all others run. Claims are held as long as the pod lives.
func shareWithinPod(p *config.Policy, wants []want, claims bool) {
	var running []*want
	var moments [][]*want
	for i := range wants {
		w := &wants[i]
		if w.init && !w.sidecar && !claims {
			moments = append(moments, append(slices.Clone(running), w))
		} else {
			running = append(running, w)
		}
	}
	for _, most := range limitsOfPod(p) {
		for _, together := range append(moments, running) {
			if most > 0 {
				divide(p, most, together)
			}
		}
	}
}

// divide divides what others leave of the memory that containers may have together among those with sizes from the history, in
// proportion to these. Each gets the smallest slice at least, and then counts as one of the others.
func divide(p *config.Policy, most quantity.MiB, together []*want) {
	var others, sized quantity.MiB
	var sharing []*want
	for _, w := range together {
		if w.sizedBy == "" {
			others += w.memory()
		} else {
			sized += w.memory()
			sharing = append(sharing, w)
		}
	}
	if others+sized <= most {
		return
	}
	part := func(w *want) quantity.MiB {
		return max(most-others, 0) * w.resolved.Memory / max(sized, 1) / historyStep * historyStep
	}
	for i := 0; i < len(sharing); i++ {
		w := sharing[i]
		if least := smallestSlice(p, w.request.GPUs); part(w) < least {
			sized -= w.memory()
			w.holdTo(p, least)
			others += w.memory()
			sharing, i = slices.Delete(sharing, i, i+1), -1
		}
	}
	for _, w := range sharing {
		w.holdTo(p, part(w))
	}
}

// holdTo holds a size from the history to one that policy's limits leave.
func (a *want) holdTo(p *config.Policy, size quantity.MiB) {
	if size >= a.resolved.Memory {
		return
	}
	a.sizedBy += fmt.Sprintf("; %s, held to %s by policy's limits of the pod", a.resolved.Memory, size)
	a.resolved.Memory = size
	a.resolved.MemoryLimit = burstWithin(p, size, a.resolved.MemoryLimit)
}

// memory is the requested memory of all GPUs of the container; 0: it is not a size in bytes.
func (a *want) memory() quantity.MiB { return a.resolved.Memory * quantity.MiB(max(a.request.GPUs, 1)) }

// heldToDevices holds sizes from a history that fit no pool to the largest device on which the pod fits then, if it has room for the slice
// that the workload has: an estimate is more than was ever used, and may be more than any device has. If there is none, wants stay.
func heldToDevices(in *Input, req api.Request, wants []want, unfit []*FitError) ([]want, []candidate, []*FitError) {
	var rooms []quantity.MiB
	for _, e := range unfit {
		if e.kind == kindSize && e.pool.Usable() > 0 {
			rooms = append(rooms, e.pool.Usable())
		}
	}
	slices.Sort(rooms)
	for _, room := range slices.Backward(slices.Compact(rooms)) {
		held, changed := slices.Clone(wants), false
		for i := range held {
			w := &held[i]
			if w.sizedBy == "" || w.resolved.Memory <= room {
				continue
			}
			if r := recommended(in, advice.OwnerOf(in.Pod), w.request.Name); r != nil && r.Slice > 0 && r.Slice <= room {
				w.sizedBy += fmt.Sprintf("; %s, held to %s of the largest device", w.resolved.Memory, room)
				w.resolved.Memory, changed = room, true
			}
		}
		if !changed {
			continue
		}
		if fitting, others := candidates(in, req, held); len(fitting) > 0 {
			return held, fitting, others
		}
	}
	return wants, nil, unfit
}

// burstWithin is the memory limit of the default slice, which may be too high a multiple of a small size.
func burstWithin(p *config.Policy, size, limit quantity.MiB) quantity.MiB {
	if ratio := quantity.MiB(p.Limits.MaxLimitRequestRatio); ratio > 0 {
		return min(limit, size*ratio)
	}
	return limit
}

// sizedByHistory warns the author of a denied pod of sizes that the pod does not request.
func sizedByHistory(wants []want) (warnings []string) {
	for _, w := range wants {
		if w.sizedBy != "" {
			warnings = append(warnings,
				fmt.Sprintf("the size of container %q is %s; write %s for another one", w.request.Name, w.sizedBy, api.LabelMemory))
		}
	}
	return warnings
}
