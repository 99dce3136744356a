package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// build records the slices and edits of the chosen placement, and returns warnings for its author.
func build(in *Input, req api.Request, chosen *candidate, same []*candidate) (*promise.Promise, []string) {
	p := &promise.Promise{
		Version: promise.Version, Namespace: in.Namespace.Name, Policy: in.Policy.Name,
		Request: req, Strategy: chosen.strategy.Name, Pools: []string{chosen.pool().Name},
		Charge: podCharge(chosen), Slice: inWords(chosen, same),
		Planned: promise.Planned{Strategy: chosen.strategy.Name, Pool: chosen.pool().Name, Tier: chosen.tier()},
	}
	for _, c := range slices.Concat(same, chosen.instances) {
		p.Pools = append(p.Pools, c.pool().Name)
	}
	w := builder{in: in, promise: p, strategy: chosen.strategy}
	for i := range chosen.containers {
		w.container(&chosen.containers[i], chosen)
		if chosen.strategy.Whole() {
			w.wholeDevices(&chosen.containers[i], deviceInWords(chosen, same))
		}
	}
	if chosen.strategy.Note != nil && !chosen.pool().Awaited() {
		if text := chosen.strategy.Note(placementOf(in, chosen.pool(), nil)); text != "" {
			w.note("%s", text)
		}
	}
	w.hideDevices()
	w.guard(chosen)
	w.replaced()
	p.Affinity = affinityFor(in, chosen, slices.Concat(same, chosen.instances))
	w.podBlock()
	if provider := chosen.pool().Provider(); provider.HostIPC {
		w.hostIPC(provider.Daemon)
	}
	return p, w.warnings
}

// builder collects a Promise and warnings for its author.
type builder struct {
	in       *Input
	promise  *promise.Promise
	strategy *strategies.Strategy
	warnings []string
}

func (w *builder) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.warnings, text) {
		w.warnings = append(w.warnings, text)
	}
}

func (w *builder) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.promise.Planned.Notes, text) {
		w.promise.Planned.Notes = append(w.promise.Planned.Notes, text)
	}
}

// container writes one container's slice.
func (w *builder) container(p *placed, chosen *candidate) {
	injected := w.strategy.Inject(strategies.Grant{
		Provider: p.pool.Provider(), DriverLimits: p.pool.DriverLimits, MPS: w.in.Policy.MPS,
		Slice: p.size.slice, Limit: p.size.limit, GPUs: p.request.GPUs,
		Processes: p.size.procs, Compute: p.size.compute, Container: p.spec,
	})
	c := promise.Container{
		Name: p.request.Name, Resource: p.pool.Resource, Count: p.units(), Granule: p.size.granule, Replicas: p.size.replicas, Class: p.class,
		Devices: max(p.share, p.preferred.share).Times(p.units()), Slice: p.size.slice,
		Limit: p.size.limit, Mounts: injected.Mounts, Args: p.profile.Args, Shim: p.profile.Shim,
	}
	if w.strategy.Claims {
		w.claim(p, &c, len(chosen.containers) == 1)
	}
	if c.Shim != "" {
		c.Mounts = append(c.Mounts, corev1.VolumeMount{Name: limits.ShimVolume, MountPath: limits.ShimFolder, ReadOnly: true})
		injected.Volumes = append(injected.Volumes, shimVolume())
	}
	c.Env = injected.Env
	if p.size.slice > 0 { // for anyone's own code
		c.Env = append(c.Env, podspec.Variable{Name: nvidia.EnvMemoryBytes, Value: strconv.FormatInt(p.size.slice.Bytes(), 10)})
		if f := p.fraction(); f != "" {
			c.Env = append(c.Env, podspec.Variable{Name: nvidia.EnvFraction, Value: f})
		}
	}
	for _, e := range p.profile.Env {
		c.Env = append(c.Env, podspec.Variable{Name: e.Name, Value: e.Value})
	}
	c.Env = append(c.Env, w.policyEnv(p, c.Env)...)
	for _, v := range injected.Volumes {
		if !slices.ContainsFunc(w.promise.Volumes, func(have corev1.Volume) bool { return have.Name == v.Name }) {
			w.promise.Volumes = append(w.promise.Volumes, v)
		}
	}
	w.promise.Containers = append(w.promise.Containers, c)
	if p.pool.InstanceMemory > 0 {
		w.roundedUp(p)
	}
	w.planned(p)
}

// shimVolume is in memory: the cluster autoscaler removes no node with a pod that has a volume on its disk.
func shimVolume() corev1.Volume {
	size := resource.MustParse(limits.ShimSize)
	return corev1.Volume{Name: limits.ShimVolume,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &size}}}
}

// roundedUp warns about an amount that a smaller instance almost has.
func (w *builder) roundedUp(p *placed) {
	requested := p.resolved.Memory
	for i := range w.in.Pools {
		if smaller := &w.in.Pools[i]; smaller.Usable() > 0 && smaller.Usable() < requested &&
			smaller.Usable() < p.pool.Usable() && namesAmount(smaller, requested) {
			w.warn("container %q requests %s, a %s has %s usable, so it gets a %s; write %s: %q for the smaller one", p.request.Name, requested,
				smaller.MIGProfile, smaller.Usable().Human(), p.pool.MIGProfile, api.LabelMemory, smaller.Usable())
			return
		}
	}
}

// fraction is the slice as a share of the total that a process sees, or "": not known, or not less than the whole.
func (p *placed) fraction() string {
	if p.pool.TotalMayBeLimit() || !p.dependsOnDevice() {
		return ""
	}
	return quantity.FormatRatio(int64(p.size.slice), int64(p.pool.Total()))
}

// policyEnv are the policy's own variables: the author's value stays, and so does one that a slice already needs.
func (w *builder) policyEnv(p *placed, have []podspec.Variable) (out []podspec.Variable) {
	for _, e := range w.in.Policy.Env {
		if slices.ContainsFunc(p.spec.Env, func(v corev1.EnvVar) bool { return v.Name == e.Name }) {
			w.warn("container %q sets %s itself; policy's value is not used", p.request.Name, e.Name)
			continue
		}
		if slices.ContainsFunc(have, func(v podspec.Variable) bool { return v.Name == e.Name }) {
			continue
		}
		value, ok := p.expand(e.Value)
		if !ok {
			w.note("%s is not set in %q: its value for the slice is unknown on this pool", e.Name, p.request.Name)
			continue
		}
		out = append(out, podspec.Variable{Name: e.Name, Value: value})
	}
	return out
}

// expand fills the placeholders of a policy's variable; ok is false where a value is not known.
func (p *placed) expand(text string) (string, bool) {
	if !strings.Contains(text, "{{") {
		return text, true
	}
	fraction := p.fraction()
	// Half a value in a variable would be worse than none.
	if p.size.slice == 0 || fraction == "" && strings.Contains(text, "{{fraction}}") {
		return "", false
	}
	return strings.NewReplacer(
		"{{memoryBytes}}", strconv.FormatInt(p.size.slice.Bytes(), 10),
		"{{memoryMiB}}", strconv.FormatInt(int64(p.size.slice), 10),
		"{{fraction}}", fraction,
	).Replace(text), true
}

// planned lists the tiers of the container's slice, and the limits that are not enforced.
func (w *builder) planned(p *placed) {
	out := promise.PlannedContainer{Name: p.request.Name, Tiers: append([]api.Tier{}, p.tiers...), Cap: p.profile.Cap}
	switch {
	case p.size.slice > 0:
		out.Memory = p.size.slice.String()
	default:
		out.Memory = "one replica"
		w.note("%q gets one replica of a device whose memory is unknown: no memory limit is written", p.request.Name)
	}
	if p.size.limit > p.size.slice {
		out.Limit = p.size.limit.String()
	}
	out.Framework = p.profile.Text()
	if len(p.spec.EnvFrom) > 0 {
		w.note("%q takes variables from a ConfigMap or Secret, which admission does not see: only the node's container runtime keeps them from naming devices", p.request.Name)
	}
	if p.profile.NotCapped != "" && w.strategy.View != frameworks.ViewSliced {
		w.note("%q has no framework cap: %s", p.request.Name, p.profile.NotCapped)
	}
	for _, n := range p.profile.Notes {
		w.note("%q: %s", p.request.Name, n)
	}
	if text := frameworks.RanksBeyond(p.spec, p.request.GPUs); text != "" {
		w.warn("container %q: %s", p.request.Name, text)
	}
	for _, text := range p.profile.Warnings {
		w.warn("container %q: %s", p.request.Name, text)
	}
	if p.size.compute > 0 && w.strategy.HoldsCompute {
		out.Compute = p.size.compute
	} else if p.size.compute > 0 {
		w.computeNotHeld(p)
	}
	// an instance may be larger than the request
	if burst := p.request.Size.MemoryLimit; burst > 0 && p.size.slice > burst && w.strategy.Tier != api.TierHardware {
		w.warn("memory-limit %s of container %q is less than its slice of %s and has no effect", burst, p.request.Name, p.size.slice)
	}
	switch {
	case len(p.tiers) > 0:
	case p.pool.Awaited():
		w.note("nothing is promised to limit the memory of %q: the pool it will run on is not known", p.request.Name)
	default:
		w.note("nothing limits the memory of %q: %s does not divide it", p.request.Name, w.strategy.Name)
	}
	w.promise.Planned.Containers = append(w.promise.Planned.Containers, out)
}

// computeNotHeld reports whether the strategy does not hold a percentage of the multiprocessors: to the author who requested
// it, and in the plan where it came with a class of policy's.
func (w *builder) computeNotHeld(p *placed) {
	if w.strategy.OwnCompute != "" {
		w.note("compute %d of %q has no effect: %s", p.size.compute, p.request.Name, w.strategy.OwnCompute)
		return
	}
	tell := w.note
	if p.request.Size.Compute > 0 {
		tell = w.warn
	}
	tell("compute %d of container %q is not enforced under %s; only %s enforces it", p.size.compute, p.request.Name, w.strategy.Name,
		message.JoinNames(strategies.NamesWith(func(s *strategies.Strategy) bool { return s.HoldsCompute })))
}

// hostIPC gives the pod the node's IPC namespace, which its MPS daemon needs, and notes it. Where its author did, the
// promise records that it is needed: Verify knows no pools.
func (w *builder) hostIPC(daemon string) {
	if w.in.Pod.Spec.HostIPC {
		w.promise.Pod.NeedsHostIPC = true
		return
	}
	w.promise.Pod.HostIPC = true
	w.note("the pod shares the node's IPC namespace, which %s needs: it can reach the shared memory of others there", daemon)
}

// hideDevices records from which containers the devices are hidden. If the author does that already nothing is
// recorded, since recorded edits are reverted one day.
func (w *builder) hideDevices() {
	for c := range podspec.Containers(&w.in.Pod.Spec) {
		if w.promise.Container(c.Name) == nil && !slices.Contains(c.Env, corev1.EnvVar{Name: nvidia.EnvVisibleDevices, Value: nvidia.NoDevices}) {
			w.promise.Hidden = append(w.promise.Hidden, c.Name)
		}
	}
}

// replaced warns the author about variables of ours that the pod brought along.
func (w *builder) replaced() {
	for c := range podspec.Containers(&w.in.Pod.Spec) {
		for _, e := range c.Env {
			if e.Name == nvidia.EnvMPSThreads && w.readsThreads(c.Name, e.Value) {
				w.warn("container %q: %s=%s is read as %s: %q; write that label", c.Name, e.Name, e.Value, api.LabelCompute, e.Value)
				continue
			}
			// An author may hide devices from a container without a slice.
			if nvidia.IsOwnVariable(e.Name) || nvidia.NamesDevices(e.Name) && !(e.Value == nvidia.NoDevices && w.promise.Container(c.Name) == nil) {
				w.warn("container %q: %s belongs to gpuslice in a slice; the pod's own value is not used", c.Name, message.Quote(e.Name))
			}
		}
	}
}

// readsThreads reports whether a container's variable for MPS became its share of compute.
func (w *builder) readsThreads(container, value string) bool {
	return slices.ContainsFunc(w.promise.Request.Containers, func(c api.ContainerRequest) bool {
		return c.Name == container && c.Threads > 0 && strconv.Itoa(c.Threads) == value
	})
}

// podBlock writes policy's additions to the pod itself if its author left the fields open. The author's fields are not
// recorded, even if they are the same, since recorded edits are reverted one day.
func (w *builder) podBlock() {
	spec, policy := &w.in.Pod.Spec, w.in.Policy.Pod
	if policy.PriorityClassName != "" {
		if spec.PriorityClassName == "" {
			w.promise.Pod.PriorityClassName = policy.PriorityClassName
		} else if spec.PriorityClassName != policy.PriorityClassName {
			w.note("the pod's own priorityClassName %q stays", spec.PriorityClassName)
		}
	}
	if policy.SchedulerName != "" {
		if spec.SchedulerName == "" || spec.SchedulerName == corev1.DefaultSchedulerName {
			w.promise.Pod.SchedulerName = policy.SchedulerName
		} else if spec.SchedulerName != policy.SchedulerName {
			w.note("the pod's own schedulerName %q stays", spec.SchedulerName)
		}
	}
	if policy.RuntimeClassName != "" {
		if spec.RuntimeClassName == nil {
			w.promise.Pod.RuntimeClassName = policy.RuntimeClassName
		} else if *spec.RuntimeClassName != policy.RuntimeClassName {
			w.note("the pod's own runtimeClassName %q stays", *spec.RuntimeClassName)
		}
	}
	for _, t := range policy.Tolerations {
		if !podspec.HasToleration(spec.Tolerations, t) {
			w.promise.Tolerations = append(w.promise.Tolerations, t)
		}
	}
}
