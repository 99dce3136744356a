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

// access is how the guard, which requests no GPU, reaches the driver.
type access struct {
	way          string // one of modes
	runtimeClass string // that the pod needs for it; "": none
	why          string // why there is no way
}

// accessOn is how a guard reaches the driver on a pool: as policy says, or as the cluster allows. A runtime class holds for
// the whole pod, so that one of another kind leaves no way.
func accessOn(in *Input, pool *pools.Pool) access {
	if pool.Sharing().Claims {
		return access{way: modes.AccessClaim}
	}
	spec := in.Policy.Guard
	a := access{way: spec.Access, runtimeClass: spec.RuntimeClassName}
	switch {
	case a.way != "" && a.way != modes.AccessAuto:
	case a.runtimeClass != "":
		a.way = modes.AccessEnv
	default:
		a = autoAccess(in, pool)
	}
	has, level := podClass(in), in.Namespace.Labels[podspec.LabelPodSecurity]
	switch {
	case a.why != "":
	case a.runtimeClass != "" && has != "" && has != a.runtimeClass:
		return access{why: fmt.Sprintf("it reaches the driver through the runtime class %q, and the pod has %q", a.runtimeClass, has)}
	case a.way == modes.AccessVolume && (level == "baseline" || level == "restricted"):
		return access{why: fmt.Sprintf("guard.access: volume needs a hostPath, which Pod Security %q forbids", level)}
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

// autoAccess chooses by what the cluster has.
func autoAccess(in *Input, pool *pools.Pool) access {
	class := nvidiaClass(in, pool)
	operator := in.Runtimes.Operator
	switch {
	case pool.GKEPlugin():
		return access{why: "GKE's device plugin gives the driver only to containers that request a GPU"}
	case operator == nil, class != "" && !operator.IgnoresVariable:
		return access{way: modes.AccessEnv, runtimeClass: class}
	case operator.NRIPlugin && slices.Contains(operator.ManagementNamespaces, in.Namespace.Name):
		return access{way: modes.AccessCDI}
	case operator.CDI && class == "":
		return access{why: "the GPU Operator passes devices by CDI, and no runtime class of NVIDIA's can be used here: add the namespace to " +
			"NRI_MANAGEMENT_CDI_DEVICE_NAMESPACES of the operator's NRI plugin, or set guard.access"}
	case operator.IgnoresVariable && operator.AcceptsMounts:
		return access{way: modes.AccessVolume, runtimeClass: class}
	case operator.IgnoresVariable:
		return access{why: "the GPU Operator's container toolkit ignores NVIDIA_VISIBLE_DEVICES of containers that request no GPU"}
	}
	return access{way: modes.AccessEnv, runtimeClass: class}
}

// nvidiaClass is the runtime class of NVIDIA's for a pod on the pool: the pod's own, if it is one, else the preferred one; "": there is
// none.
func nvidiaClass(in *Input, pool *pools.Pool) string {
	usable, has := in.Runtimes.OnPool(pool), podClass(in)
	switch {
	case len(usable) == 0:
		return ""
	case slices.Contains(usable, has):
		return has
	}
	return usable[0]
}

// failed is why guards that reach the driver in this way do not count on the pool; "": they do.
func (a access) failed(in *Input, pool *pools.Pool) string {
	how := modes.DescribeAccess(a.way, cmp.Or(a.runtimeClass, podClass(in)))
	reason := pool.GuardFailures[how]
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("%s (guard.access: %s); it counts again once one there can, and gpuslice doctor reports what failed", reason, how)
}

// DescribeAccess tells how a guard of a pod that says nothing itself reaches the driver on a pool, or why it does not.
func DescribeAccess(in *Input, pool *pools.Pool) (how, why string) {
	asked := *in
	asked.Pod = &corev1.Pod{}
	a := accessOn(&asked, pool)
	if a.why != "" {
		return a.way, a.why
	}
	return modes.DescribeAccess(a.way, a.runtimeClass), ""
}
