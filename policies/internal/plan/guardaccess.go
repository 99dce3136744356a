package plan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// driverAccess is how the guard reaches the driver.
type driverAccess struct {
	Way          string // one of modes
	RuntimeClass string // that the pod needs for it; "": none
	Why          string // why there is no way
}

// guardAccessOn is how a guard reaches the driver on a pool: by policy, or as the cluster allows. A runtime class holds
// for the whole pod, so that one of another kind leaves no way.
func guardAccessOn(in *Input, pool *pools.Pool) driverAccess {
	if pool.Sharing().Claims {
		return driverAccess{Way: modes.AccessClaim}
	}
	spec, has, level := in.Policy.Guard, podClass(in), in.Namespace.Labels[podspec.LabelPodSecurity]
	a := driverAccess{Way: spec.Access, RuntimeClass: spec.RuntimeClassName}
	switch {
	case a.Way != "" && a.Way != modes.AccessAuto:
	case a.RuntimeClass != "":
		a.Way = modes.AccessEnv // policy names the class because it obeys the variable
	default:
		a = autoAccess(in, pool, has)
	}
	switch {
	case a.Why != "":
	// A pod has one runtime class, and its author's choice stays.
	case a.RuntimeClass != "" && has != "" && has != a.RuntimeClass:
		return driverAccess{Why: fmt.Sprintf("it reaches the driver through the runtime class %q, and the pod has %q", a.RuntimeClass, has)}
	case a.Way == modes.AccessVolume && (level == "baseline" || level == "restricted"):
		return driverAccess{Why: fmt.Sprintf("guard.access: volume needs a hostPath, which Pod Security %q forbids", level)}
	}
	return a
}

// podClass is the runtime class that the pod has without the guard.
func podClass(in *Input) string {
	if own := in.Pod.Spec.RuntimeClassName; own != nil {
		return *own
	}
	return in.Policy.Pod.RuntimeClassName
}

// autoAccess chooses from the cluster's facts, for a pod that has a runtime class.
func autoAccess(in *Input, pool *pools.Pool, has string) driverAccess {
	class := "" // of NVIDIA's: the pod's own, if it is one, else the preferred one
	if usable := in.Runtimes.OnPool(pool); slices.Contains(usable, has) {
		class = has
	} else if len(usable) > 0 {
		class = usable[0]
	}
	operator := in.Runtimes.Operator
	switch {
	case pool.GKEPlugin():
		return driverAccess{Why: "GKE's device plugin gives the driver only to containers that request a GPU"}
	case operator == nil, class != "" && !operator.IgnoresVariable:
		return driverAccess{Way: modes.AccessEnv, RuntimeClass: class}
	case operator.NRIPlugin && slices.Contains(operator.ManagementNamespaces, in.Namespace.Name):
		return driverAccess{Way: modes.AccessCDI}
	case operator.CDI && class == "": // the default runtime passes nothing then: the variable would be written for nobody
		return driverAccess{
			Why: "the GPU Operator passes devices by CDI, and no runtime class of NVIDIA's can be used here: add the namespace to " +
				"NRI_MANAGEMENT_CDI_DEVICE_NAMESPACES of the operator's NRI plugin, or set guard.access"}
	case operator.IgnoresVariable && operator.AcceptsMounts:
		return driverAccess{Way: modes.AccessVolume, RuntimeClass: class}
	case operator.IgnoresVariable:
		return driverAccess{Why: "the GPU Operator's container toolkit ignores NVIDIA_VISIBLE_DEVICES of containers that request no GPU"}
	}
	return driverAccess{Way: modes.AccessEnv, RuntimeClass: class}
}

// failed is why guards that reach the driver in this way do not count on the pool; "": they do.
func (a driverAccess) failed(in *Input, pool *pools.Pool) string {
	how := modes.DescribeAccess(a.Way, cmp.Or(a.RuntimeClass, podClass(in)))
	reason := pool.GuardFailures[how]
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("%s (guard.access: %s); it counts again once one there can, and gpuslice doctor reports what failed", reason, how)
}

// DescribeGuardAccess returns how the guard of a pod with no runtime class of its own reaches the driver on a pool, or why it does not.
func DescribeGuardAccess(in *Input, pool *pools.Pool) (how, why string) {
	empty := *in
	empty.Pod = &corev1.Pod{}
	a := guardAccessOn(&empty, pool)
	if a.Why != "" {
		return a.Way, a.Why
	}
	return modes.DescribeAccess(a.Way, a.RuntimeClass), ""
}
