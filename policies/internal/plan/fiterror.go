package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// FitError is why a candidate was not chosen. Its text is formatted only when it is printed.
type FitError struct {
	kind      fitErrorKind
	pool      *pools.Pool
	requested quantity.MiB
	fraction  quantity.Fraction // the fraction from which the requested amount was computed, if it was one
	container api.ContainerRequest
	text      string
	violation *api.Violation
}

type fitErrorKind int

const (
	kindSize fitErrorKind = iota
	kindBurst
	kindReach
	kindResource
	kindSeveral
	kindInstances
	kindUnknownDevice
	kindRule
	kindStrategy // the pool is shared in a way that the pod does not come to
)

// anotherStrategy is the text of a pool whose strategy the pod does not request.
const anotherStrategy = "and the pod requests another"

// Error is why, for people.
func (e *FitError) Error() string {
	switch e.kind {
	case kindSize:
		return fmt.Sprintf("%s does not fit %s (%s usable)", e.size(), e.pool.Describe(), e.pool.Usable().Human())
	case kindBurst:
		return fmt.Sprintf("memory-limit %s does not fit %s (%s is the most)", e.requested, e.pool.Describe(), mostOf(e.pool).Human())
	case kindReach:
		return "the pod cannot reach it: " + e.text
	case kindResource:
		return fmt.Sprintf("container %q requests %s, the pool offers %s", e.container.Name, e.container.Resource, e.pool.Offer())
	case kindSeveral:
		if e.pool.Granular {
			return fmt.Sprintf("container %q requests %d of %s, which are parts of a GPU on %s; how many a slice takes follows from its memory",
				e.container.Name, e.container.GPUs, e.container.Resource, e.pool.Describe())
		}
		return fmt.Sprintf("container %q requests %d units of a shared GPU; two replicas may be the same device and give no more than one",
			e.container.Name, e.container.GPUs)
	case kindInstances:
		return fmt.Sprintf("container %q requests %d GPUs; a CUDA process sees one MIG instance and no other", e.container.Name, e.container.GPUs)
	case kindUnknownDevice:
		if e.requested == 0 && e.pool.Usable() > 0 {
			return "its device memory is unknown, so a fraction of it cannot be computed; request an amount of memory"
		}
		what := "whether the slice fits"
		if e.requested > 0 {
			what = fmt.Sprintf("whether %s fits", e.requested)
		}
		return fmt.Sprintf("its device memory is unknown%s, so %s is not known; declare deviceMemory for it in the default policy, or write %s: %q for one replica",
			e.cause(), what, api.LabelClass, api.ClassReplica)
	case kindRule:
		return e.violation.String()
	case kindStrategy:
		return e.sharing()
	}
	return ""
}

// cause is what keeps the pool's memory from being known, with a node that shows it.
func (e *FitError) cause() string {
	if len(e.pool.Notes) == 0 {
		return ""
	}
	text := strings.Join(e.pool.Notes, "; ")
	if len(e.pool.Nodes) > 0 && len(e.pool.Nodes[0].Named) > 0 {
		text = "node " + e.pool.Nodes[0].Named[0].Name + ": " + text
	}
	return " (" + text + ")"
}

// sharing is how the pool is shared, where that rules it out.
func (e *FitError) sharing() string {
	switch {
	case e.pool.Strategy != "":
		return fmt.Sprintf("its strategy is %s, %s", e.pool.Strategy, e.text)
	case len(e.pool.Notes) > 0:
		return strings.Join(e.pool.Notes, "; ")
	}
	return "how its GPUs are shared is not known"
}

// size is the request, as it was written.
func (e *FitError) size() string {
	if e.fraction.Zero() {
		return e.requested.String() + e.text
	}
	return fmt.Sprintf("%s of a device (%s)", e.fraction, e.requested)
}

// most is the largest request on the same pool.
func (e *FitError) most() string {
	p := e.pool
	if e.text != "" {
		return fmt.Sprintf("request %s or less in all", p.Usable())
	}
	if e.fraction.Zero() || p.DeviceMemory <= p.Reserve {
		return fmt.Sprintf("write %s: %q or less", api.LabelMemory, p.Usable())
	}
	return fmt.Sprintf("request a fraction of %s or less", p.LargestFraction())
}

// denials turns the reasons why no candidate was chosen into violations: rules first, since they show the remedies,
// then requests that are too large for every pool.
func denials(in *Input, unfit []*FitError) []api.Violation {
	var out []api.Violation
	for _, e := range unfit {
		if e.kind == kindRule && !slices.Contains(out, *e.violation) {
			out = append(out, *e.violation)
		}
	}
	if len(out) > 0 {
		return out
	}
	if i := slices.IndexFunc(unfit, func(e *FitError) bool { return e.kind == kindSeveral }); i >= 0 {
		return []api.Violation{{Rule: api.RuleStrategy, Reason: "several units of a shared GPU",
			Detail: unfit[i].Error() + "; " + oneInstead(in, unfit[i])}}
	}
	if i := slices.IndexFunc(unfit, func(e *FitError) bool { return e.kind == kindInstances }); i >= 0 {
		return []api.Violation{{Rule: api.RuleStrategy, Reason: "several MIG instances in one container", Detail: unfit[i].Error() +
			"; request one GPU and more memory, one in each of several containers, or the instances by their own resource name"}}
	}
	if v := tooLarge(in, unfit); v != nil {
		return []api.Violation{*v}
	}
	if v := nowhereOffered(in, unfit); v != nil {
		return []api.Violation{*v}
	}
	text, allows := reasons(unfit), fmt.Sprintf("; policy %s allows %s", in.Policy.Name, message.JoinNames(in.Policy.Strategies))
	switch {
	case slices.ContainsFunc(unfit, func(e *FitError) bool { return e.kind == kindStrategy && e.text == anotherStrategy }):
		text += allows + fmt.Sprintf("; leave out %s, or write the strategy of a pool", api.LabelStrategy)
	case slices.ContainsFunc(unfit, func(e *FitError) bool { return e.kind != kindStrategy }):
		text += allows
	case len(unfit) == 0:
		text += allows + "; declare the pool in the cluster's default policy"
	case slices.ContainsFunc(unfit, func(e *FitError) bool { return e.pool.Strategy != "" }):
		text += allows + "; allow another strategy, or declare the pool in the cluster's default policy"
	default:
		text += "; no slice is planned there until a cluster administrator corrects that, or declares the pool in the default policy"
	}
	return []api.Violation{{Rule: api.RuleFit, Reason: "no pool fits", Detail: text}}
}

// oneInstead is the remedy for several units of a shared GPU.
func oneInstead(in *Input, e *FitError) string {
	remedy, usable := "request one", e.pool.Usable()
	switch {
	case e.pool.Granular:
		return fmt.Sprintf("request %s: 1 and write %s: %s", api.ResourceGPU, api.LabelMemory, pools.AdvisedMemory(in.Pools, in.Policy.Strategies))
	case usable > 0 && e.container.Size.Memory > usable:
		remedy = fmt.Sprintf("request one and write %s: %q or less", api.LabelMemory, usable)
	}
	for i := range in.Pools {
		if p := &in.Pools[i]; p.Sharing().Unit == strategies.UnitDevice && in.Policy.Allows(p.Strategy) {
			return remedy + fmt.Sprintf(", or write %s: %q for whole GPUs", api.LabelStrategy, p.Strategy)
		}
	}
	return remedy
}

// reasons is why each pool does not do.
func reasons(unfit []*FitError) string {
	var whys []string
	for _, e := range unfit {
		whys = append(whys, e.pool.Name+": "+e.Error())
	}
	if len(whys) == 0 {
		return "no node offers a GPU by a known name, and no pool is declared"
	}
	slices.Sort(whys)
	return message.ShortList(slices.Compact(whys))
}

// tooLarge is the denial of a request that exceeds every pool that the pod can reach: the request, the largest slice
// and its pool, and the remedy.
func tooLarge(in *Input, unfit []*FitError) *api.Violation {
	var best *FitError
	var reached, named bool
	for _, e := range unfit {
		named = named || e.kind == kindResource
		if e.kind != kindSize && e.kind != kindBurst {
			continue
		}
		ok, _ := e.pool.Reach(in.Pod, in.Policy.Pod.Tolerations)
		// The message names the largest pool that the pod can reach, or the largest of all if it reaches none.
		if best == nil || ok && !reached || ok == reached && e.pool.Usable() > best.pool.Usable() {
			best, reached = e, ok
		}
	}
	switch {
	case best == nil:
		return nil
	case best.kind == kindBurst:
		return &api.Violation{Rule: api.RuleFit, Reason: "memory-limit fits no pool",
			Detail: fmt.Sprintf("%s; write %s: %q or less", best, api.LabelMemoryLimit, mostOf(best.pool))}
	case named:
		return &api.Violation{Rule: api.RuleFit, Reason: "the slice fits no pool",
			Detail: fmt.Sprintf("%s, and the pod requests %s by name; %s, or request %s: 1 to get what fits",
				best, best.pool.Offer(), best.most(), api.ResourceGPU)}
	}
	which := "the largest there is"
	if slices.ContainsFunc(unfit, func(e *FitError) bool { return e.kind == kindReach }) {
		which = "the largest that the pod can reach"
	}
	return &api.Violation{Rule: api.RuleFit, Reason: "the slice fits no pool",
		Detail: fmt.Sprintf("%s, %s (%s); %s", best, which, best.pool.Offer(), best.most())}
}

// nowhereOffered is the denial of a resource that a container names and no pool has.
func nowhereOffered(in *Input, unfit []*FitError) *api.Violation {
	i := slices.IndexFunc(unfit, func(e *FitError) bool { return e.kind == kindResource })
	if i < 0 {
		return nil
	}
	requested := unfit[i].container
	var offered []string
	var shared []api.StrategyName
	allowed := false
	for _, p := range in.Pools {
		if p.Resource == requested.Resource {
			return nil // another reason stands in its way
		}
		offered, allowed = append(offered, p.Offer()), allowed || in.Policy.Allows(p.Strategy)
		if p.Strategy != "" {
			shared = append(shared, p.Strategy)
		}
	}
	slices.Sort(offered)
	slices.Sort(shared)
	there, remedy := "there are "+strings.Join(slices.Compact(offered), ", "), fmt.Sprintf("request %s: 1 to get what fits", api.ResourceGPU)
	switch {
	case len(offered) == 0:
		there, remedy = reasons(nil), "declare the pool in the cluster's default policy"
	case !allowed && shared != nil:
		remedy = fmt.Sprintf("policy %s allows %s, and the strategy there is %s; allow that in the policy, and %s", in.Policy.Name,
			message.JoinNames(in.Policy.Strategies), message.JoinNames(slices.Compact(shared)), remedy)
	}
	return &api.Violation{Rule: api.RuleFit, Reason: "no pool offers the resource",
		Container: requested.Name, Field: request.ResourceField("limits", requested.Resource),
		Detail: fmt.Sprintf("container %q requests %s, and %s; %s", requested.Name, requested.Resource, there, remedy)}
}
