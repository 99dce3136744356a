package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

const guardObserverUser = 65532

// guardPlan decides whether a pod gets a guard, and whether the guard can enforce a slice there.
type guardPlan struct {
	inject  bool
	holds   bool         // it can terminate processes that exceed the slice
	observe bool         // it never ends anything, by policy or for want of rights
	why     string       // why it is not injected, or does not hold
	user    int64        // the UID it runs as
	kill    bool         // it needs CAP_KILL to signal others
	agent   bool         // the node's agent holds the slice; the pod gets the check alone
	access  driverAccess // how it reaches the driver
	failed  bool         // it would hold, but the last guards there could not read the GPUs
}

// planGuard decides about the guard for one candidate. Its needs, and the consequences without them:
//
//	a way to the driver   else not injected (guardaccess)
//	driver 565.57         else not injected: an in-pod guard sees nothing it may act on
//	readings              else it does not count: the last guards there that reached the driver in this way had none
//	the pod's processes   a shared PID namespace; not for images that need PID 1, or an explicit "false"
//	memory of its own     none that the pod's containers share by a limit of the pod
//	the right to signal   UID 0 with CAP_KILL, or the tenant's own UID where Pod Security is restricted; else observe
//	a safe ending         under MPS the daemon's control program and pipe: our own daemon; beside NVIDIA's, observe
func planGuard(in *Input, c *candidate) guardPlan {
	if why := guardUnwanted(in, c); why != "" {
		return guardPlan{why: why}
	}
	if c.pool().GuardedByAgents(in.Policy.Guard.Mode) {
		return planAgent(in)
	}
	if why := guardImpossible(in, c); why != "" {
		return guardPlan{why: why}
	}
	way := guardAccessOn(in, c.pool())
	if way.Why != "" {
		return guardPlan{why: way.Why}
	}
	plan := guardUser(in, c)
	plan.inject, plan.access = true, way
	switch {
	case in.Policy.Guard.DryRun:
		plan.observe, plan.why = true, "policy sets guard.dryRun"
	case plan.observe: // guardUser gave the reason
	case c.pool().DriverMajor == 0: // injected all the same: the node may have a newer driver, and the guard reports what it finds
		plan.why = "the nodes' driver is unknown, and before " + nvidia.DriverReleaseForGuard + " a guard can only observe"
	case c.strategy.MPS && !c.pool().Provider().TerminatesSafely && in.Policy.Guard.MPSTermination != "signal":
		plan.why = "a client of the MPS daemon of " + c.pool().Provider().Plugin +
			" cannot be terminated safely from the pod, and a signal can hurt its neighbors"
	default:
		if len(c.pool().GuardFailures) > 0 {
			plan.why = way.failed(in, c.pool())
		}
		plan.failed, plan.holds = plan.why != "", plan.why == ""
	}
	return plan
}

// planAgent is the plan where the node's agent holds the slice, which needs nothing of the pod.
func planAgent(in *Input) guardPlan {
	if _, why := sizeGuard(in, false); why != "" {
		return guardPlan{why: why}
	}
	plan := guardPlan{inject: true, agent: true, holds: true, user: unusedUID(&in.Pod.Spec)}
	if in.Policy.Guard.DryRun {
		plan.holds, plan.observe, plan.why = false, true, "policy sets guard.dryRun"
	}
	return plan
}

func guardUnwanted(in *Input, c *candidate) string {
	switch {
	case in.Policy.Guard.Enabled != nil && !*in.Policy.Guard.Enabled:
		return "policy sets guard.enabled: false"
	case in.Guard == nil || in.Guard.Image == "":
		return "no guard image is configured"
	case c.strategy.Tier == api.TierHardware: // no process can take more than its instance
		return "the hardware enforces the slice"
	}
	for i := range c.containers {
		if c.containers[i].size.limit > 0 {
			return ""
		}
	}
	return "the size of the slice is unknown"
}

// agentRemedy is the remedy if no sidecar can guard.
const agentRemedy = "; run gpuslice-agent on the nodes of the pool"

func guardImpossible(in *Input, c *candidate) string {
	spec := &in.Pod.Spec
	if major := c.pool().DriverMajor; major > 0 && major < nvidia.DriverForGuard { // unknown is no proof
		return fmt.Sprintf("driver %d is older than %s: a guard in the pod sees no memory that it may act on",
			major, nvidia.DriverReleaseForGuard) + agentRemedy
	}
	if spec.ShareProcessNamespace != nil && !*spec.ShareProcessNamespace {
		return "the pod sets shareProcessNamespace: false" + agentRemedy
	}
	if podspec.LimitsMemory(spec) {
		return "the pod limits the memory of all its containers together, which the others can use up (spec.resources.limits)" + agentRemedy
	}
	if _, why := sizeGuard(in, true); why != "" {
		if _, never := sizeGuard(in, false); never == "" {
			why += agentRemedy
		}
		return why
	}
	for container := range podspec.Containers(spec) {
		if frameworks.NeedsPID1(container, in.Policy.Guard.InitImages) {
			return fmt.Sprintf("the init of %q needs to be PID 1, so the pod's processes cannot be shared with a sidecar",
				container.Name) + agentRemedy
		}
		if spec.ShareProcessNamespace != nil { // its author shares the processes already, and knows what that does
			continue
		}
		if why := frameworks.UsesFirstProcess(container); why != "" {
			return fmt.Sprintf("container %q relies on the numbers of its own processes (%s), so the pod's processes cannot be shared with a sidecar",
				container.Name, why) + agentRemedy
		}
	}
	return ""
}

// guardUser chooses the user the guard runs as.
func guardUser(in *Input, c *candidate) guardPlan {
	if in.Namespace.Labels[podspec.LabelPodSecurity] != "restricted" {
		return guardPlan{user: 0, kill: true}
	}
	user, ok := tenantUser(&in.Pod.Spec, c)
	if !ok {
		return guardPlan{user: unusedUID(&in.Pod.Spec), observe: true,
			why: "Pod Security restricted lets it signal only its own user, and the pod names " +
				"no single runAsUser for its GPU containers"}
	}
	return guardPlan{user: user}
}

// tenantUser is the one user that all GPU containers say they run as.
func tenantUser(spec *corev1.PodSpec, c *candidate) (int64, bool) {
	var user *int64
	for i := range c.containers {
		own := podspec.RunAsUser(spec, c.containers[i].spec)
		if own == nil || user != nil && *user != *own { // the image decides, or two users
			return 0, false
		}
		user = own
	}
	return *user, true
}

// unusedUID is a user that no container of the pod names: one that ran as the guard's could end it.
func unusedUID(spec *corev1.PodSpec) int64 {
	user := int64(guardObserverUser)
	for taken := true; taken; {
		taken = false
		for c := range podspec.Containers(spec) {
			if own := podspec.RunAsUser(spec, c); own != nil && *own == user {
				user, taken = user+1, true
			}
		}
	}
	return user
}
