package plan

import (
	"cmp"
	"fmt"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/mig"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// sizeOn is a container's slice on one pool.
type sizeOn struct {
	slice      quantity.MiB // 0: whatever a replica of a device of unknown size holds
	limit      quantity.MiB
	fromDevice bool // the slice depends on the device's size
	compute    int
	procs      int
	// Of a granular pool's device; 0: units of the resource are no parts of it.
	granule  quantity.MiB
	replicas int
}

// resolve completes a request from policy: its class, or the default slice where it names no size. strategy is the one that
// the pod requests, or empty. The result has Memory, Fraction or the class "replica".
func resolve(in *Input, strategy api.StrategyName, c api.ContainerRequest) (api.Size, *api.Violation) {
	requested, p := c.Size, in.Policy
	if !requested.Named() {
		if c.Resource != "" && c.Resource != api.ResourceGPU || strategies.Named(strategy).Whole() {
			requested.Class = api.ClassReplica // who names a shared or MIG resource, or wants whole devices, requests units of it
			return requested, nil
		}
		if p.DefaultSlice == nil {
			return requested, &api.Violation{Rule: api.RulePolicy, Reason: "no default slice", Container: c.Name, Detail: fmt.Sprintf(
				"container %q does not say how much it needs and policy %s has no defaultSlice; write %s: %s",
				c.Name, p.Name, api.LabelMemory, pools.AdvisedMemory(in.Pools, p.Strategies))}
		}
		requested = merged(requested, *p.DefaultSlice)
	}
	if requested.Class == "" || requested.Class == api.ClassReplica {
		return requested, nil
	}
	class, ok := p.Classes[requested.Class]
	if !ok {
		return requested, &api.Violation{Rule: api.RulePolicy, Reason: "unknown class", Detail: fmt.Sprintf(
			"container %q requests class %s; policy %s has %s", c.Name, message.Quote(requested.Class), p.Name, p.ClassList())}
	}
	requested.Class = ""
	return merged(requested, class), nil
}

// classOf is the class of policy that a request is sized by, or "". A replica is no class of policy's.
func classOf(p *config.Policy, c api.ContainerRequest) string {
	class := c.Size.Class
	if !c.Size.Named() && p.DefaultSlice != nil && (c.Resource == "" || c.Resource == api.ResourceGPU) {
		class = p.DefaultSlice.Class
	}
	if class == api.ClassReplica {
		return ""
	}
	return class
}

// merged fills omitted fields of the request from policy.
func merged(requested api.Size, s config.SliceSpec) api.Size {
	if !requested.Named() {
		requested.Memory, requested.Fraction, requested.Class = s.Memory, s.Fraction, s.Class
	}
	requested.MemoryLimit = cmp.Or(requested.MemoryLimit, s.MemoryLimit)
	requested.Compute, requested.Processes = cmp.Or(requested.Compute, s.Compute), cmp.Or(requested.Processes, s.Processes)
	return requested
}

// sizeOnPool is how large the slice is on the pool, or why it does not fit there.
func sizeOnPool(a want, strategy *strategies.Strategy, pool *pools.Pool) (sizeOn, *FitError) {
	requested := a.resolved
	if e := resourceFits(a.request, strategy, pool); e != nil {
		return sizeOn{}, e
	}
	out := sizeOn{compute: requested.Compute, procs: max(requested.Processes, 1)}
	usable := pool.Usable()
	switch {
	case strategy.Whole():
		return exclusiveSize(out, requested, pool)
	case requested.Class == api.ClassReplica && strategy.Claims:
		return out, &FitError{kind: kindStrategy, pool: pool,
			text: "which has no replicas: write " + api.LabelMemory + ": \"8Gi\" (or what it needs)"}
	case requested.Class == api.ClassReplica:
		out.slice, out.fromDevice = cmp.Or(pool.Granule(), usable), true
	case !requested.Fraction.Zero():
		if pool.DeviceMemory == 0 {
			return out, &FitError{kind: kindUnknownDevice, pool: pool}
		}
		out.slice, out.fromDevice = pool.Part(requested.Fraction), true
	default:
		out.slice = requested.Memory
	}
	if a.most > 0 && out.slice > a.most {
		out.slice = a.most
	}
	if usable == 0 && requested.Memory > 0 && strategy.Shared() && !pool.Awaited() { // nobody knows whether a share has room for it
		return out, &FitError{kind: kindUnknownDevice, pool: pool, requested: requested.Memory}
	}
	// An instance has less usable memory than its name or its share of the device suggests, and may be good enough all
	// the same.
	if usable > 0 && out.slice > usable && !holdsShare(pool, requested.Fraction) && !(a.nearest && namesAmount(pool, out.slice)) {
		return out, &FitError{kind: kindSize, pool: pool, requested: out.slice, fraction: requested.Fraction}
	}
	if pool.InstanceMemory > 0 {
		out.slice, out.fromDevice = usable, true // the instance is held whole, whatever part of it was requested
	}
	out.limit = max(out.slice, requested.MemoryLimit)
	if burst := mostOf(pool); burst > 0 && out.limit > burst {
		if pool.InstanceMemory == 0 { // an instance ends at its own size, whatever limit was requested
			return out, &FitError{kind: kindBurst, pool: pool, requested: out.limit}
		}
		out.limit = burst
	}
	if pool.Granular {
		out.granule, out.replicas = pool.Granule(), pool.Replicas
	}
	return out, nil
}

// mostOf is the most that a container may reach on the pool: no more than a replica's part of the device where the MPS
// daemon holds every client to that; a pod's own limit can only be stricter.
func mostOf(pool *pools.Pool) quantity.MiB {
	if pool.Provider().HoldsToReplica && pool.Replicas > 0 {
		return pool.DeviceMemory / quantity.MiB(pool.Replicas)
	}
	return pool.Burst()
}

// exclusiveSize is the size of a whole device: the request has to fit it, and the device is held whole.
func exclusiveSize(out sizeOn, requested api.Size, pool *pools.Pool) (sizeOn, *FitError) {
	total := pool.DeviceMemory
	most := max(requested.Memory, requested.MemoryLimit)
	if total > 0 && most > total {
		return out, &FitError{kind: kindSize, pool: pool, requested: most}
	}
	out.slice, out.limit = total, total
	return out, nil
}

// resourceFits returns why a container's own resource name or count rules the pool out.
func resourceFits(c api.ContainerRequest, strategy *strategies.Strategy, pool *pools.Pool) *FitError {
	switch {
	// no other driver distinguishes its devices
	case c.GPUs > 1 && (!strategy.Several() || strategy.Claims && pool.DeviceClass != nvidia.DRADriver):
		return &FitError{kind: kindSeveral, pool: pool, container: c}
	// Several instances may come from one device, so only who names their resource gets them.
	case c.GPUs > 1 && strategy.Unit == strategies.UnitInstance && c.Resource != pool.Resource:
		return &FitError{kind: kindInstances, pool: pool, container: c}
	case c.Resource == "" || c.Resource == api.ResourceGPU || c.Resource == pool.Resource:
		return nil
	// The device plugin may rename replicas or not, and pods that name the renamed resource fit both.
	case c.Resource == nvidia.SharedGPU && pool.Replicas > 1 && pool.MIGProfile == "":
		return nil
	}
	return &FitError{kind: kindResource, pool: pool, container: c}
}

// holdsShare reports whether an instance of the pool is at least the fraction of its device.
func holdsShare(p *pools.Pool, f quantity.Fraction) bool {
	if p.InstanceMemory == 0 || p.DeviceMemory == 0 || f.Zero() {
		return false
	}
	largest := p.LargestFraction()
	return largest.Den*f.Num <= largest.Num*f.Den
}

// namesAmount reports whether the profile's name has at least the amount, which is more than an instance has usable.
func namesAmount(p *pools.Pool, amount quantity.MiB) bool {
	profile, ok := mig.Parse(p.MIGProfile)
	return ok && p.InstanceMemory > 0 && amount <= quantity.MiB(profile.Gigabytes<<10)
}
