package plan

import (
	"cmp"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// guard writes the guard's containers, or why there are none.
func (w *builder) guard(c *candidate) {
	plan := c.guard
	if plan.why != "" {
		verb := "no guard"
		switch {
		case plan.failed:
			verb = "no guard is counted on"
		case plan.inject && plan.observe:
			verb = "the guard only observes"
		case plan.inject:
			verb = "the guard may only observe"
		}
		if c.strategy.Tier != api.TierHardware {
			w.note("%s: %s", verb, plan.why)
		}
	}
	if plan.failed {
		w.warn("no guard is counted on: %s", plan.why)
	}
	if !plan.inject {
		if c.pool().Granular {
			w.note("without a guard nothing checks at start that the parts are of one GPU")
		}
		return
	}
	first := &w.promise.Containers[0]
	sizes, _ := sizeGuard(w.in, !plan.agent)
	g := &promise.Guard{
		Image: w.in.Guard.Image, PullPolicy: w.pullPolicy(), PullSecret: w.in.Guard.PullSecret,
		CPU: sizes.cpu.String(), Memory: sizes.memory.String(),
		User: plan.user, Kill: plan.kill, Shares: !plan.agent && w.in.Pod.Spec.ShareProcessNamespace == nil,
		Agent: plan.agent, Resource: first.Resource, Count: first.Count,
	}
	for i := range w.promise.Containers {
		g.Claims = slices.DeleteFunc(append(g.Claims, w.promise.Containers[i].Claim), func(name string) bool { return name == "" })
	}
	g.Shim = w.promise.HasVolume(limits.ShimVolume)
	if !sizes.storage.IsZero() {
		g.Storage = sizes.storage.String()
	}
	if slices.Contains(w.in.Pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: g.PullSecret}) {
		g.PullSecret = "" // the author's own
	}
	for _, v := range w.guardLimits(c).Env() {
		g.Env = append(g.Env, podspec.Variable(v))
	}
	// Check and sidecar get the pipe of an MPS daemon that the device plugin does not bring.
	if client := c.pool().Provider().Client; client != nil {
		injected := client(w.in.Policy.MPS, nil)
		g.Mounts, g.Env = injected.Mounts, append(g.Env, injected.Env...)
	}
	w.guardAccess(c, g)
	if !g.Agent {
		w.guardObservation(g)
	}
	w.promise.Guard = g
}

// pullPolicy is Always where each container of the pod has it: the admission plugin AlwaysPullImages has set it before any
// webhook, and denies containers with another.
func (w *builder) pullPolicy() corev1.PullPolicy {
	for c := range podspec.Containers(&w.in.Pod.Spec) {
		if c.ImagePullPolicy != corev1.PullAlways {
			return cmp.Or(w.in.Guard.PullPolicy, corev1.PullIfNotPresent)
		}
	}
	return corev1.PullAlways
}

// guardLimits is the contract that the guard reads.
func (w *builder) guardLimits(c *candidate) limits.Limits {
	l, policy := limits.Default(), w.in.Policy.Guard
	l.Act = limits.ActPressure
	if policy.Act != "" {
		l.Act = limits.Act(policy.Act)
	}
	l.DryRun = c.guard.observe
	if policy.Grace.Duration > 0 {
		l.Grace = policy.Grace.Duration
	}
	if policy.TermGrace.Duration > 0 {
		l.TermGrace = policy.TermGrace.Duration
	}
	if policy.MaxTerminations > 0 {
		l.MaxTerminations = policy.MaxTerminations
	}
	if policy.TerminationWindow.Duration > 0 {
		l.TerminationsWindow = policy.TerminationWindow.Duration
	}
	if policy.MPSTermination != "" {
		l.MPSTermination = limits.MPSTermination(policy.MPSTermination)
	}
	if c.guard.agent {
		l.IdleReport, l.IdleTerminate = w.in.Policy.Idle.Report.Duration, w.in.Policy.Idle.Terminate.Duration
	}
	if !c.guard.agent && !w.in.Pod.Spec.HostNetwork { // two pods of one node cannot both listen on it
		l.MetricsPort = policy.MetricsPort
	}
	if (c.guard.holds || c.guard.failed) && !c.guard.agent {
		l.MinDriver = nvidia.DriverReleaseForGuard
	}
	if c.strategy.MPS { // the pipe also makes the guard take the pod's processes for MPS clients, which no signal may end first
		l.ExpectMPS, l.MPSPipeDirectory = true, c.pool().Provider().Pipe(w.in.Policy.MPS, c.pool().Resource)
	}
	for i := range c.containers {
		p := &c.containers[i]
		if p.size.limit > 0 {
			l.Containers = append(l.Containers,
				limits.Container{Name: p.request.Name, SliceBytes: p.size.slice.Bytes(), LimitBytes: p.size.limit.Bytes(), GPUs: int(p.request.GPUs)})
		}
	}
	l.MinDeviceBytes, l.MaxDeviceBytes = deviceBounds(c)
	if p := c.pool(); p.Granular {
		l.OneDevice, l.MinDeviceBytes = true, (p.Usable() + p.Reserve).Bytes()
	}
	return l
}

// deviceBounds are the sizes of a device on which the plan still holds: those of its pools, and 2 % for a driver's own
// memory.
func deviceBounds(c *candidate) (low, high int64) {
	for i := range c.containers {
		t := c.containers[i].pool.Total().Bytes()
		if t == 0 || !c.containers[i].dependsOnDevice() {
			return 0, 0
		}
		if low == 0 || t < low {
			low = t
		}
		high = max(high, t)
	}
	return low - low/50, high + high/50
}

// guardAccess gives the sidecar NVML without a replica of its own.
func (w *builder) guardAccess(c *candidate, g *promise.Guard) {
	capabilities := podspec.Variable{Name: nvidia.EnvDriverCapabilities, Value: "utility"} // NVML, and nothing that could compute
	if c.strategy.MPS {
		capabilities.Value = "compute,utility" // the control program of MPS
	}
	g.CheckEnv = []podspec.Variable{capabilities}
	if c.guard.agent {
		return
	}
	switch c.guard.access.Way {
	case modes.AccessVolume:
		device := corev1.HostPathCharDev
		w.promise.Volumes = append(w.promise.Volumes, corev1.Volume{Name: "gpuslice-devices", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/dev/null", Type: &device}}})
		g.SidecarMounts = []corev1.VolumeMount{{Name: "gpuslice-devices", MountPath: "/var/run/nvidia-container-devices/all"}}
		g.SidecarEnv = []podspec.Variable{capabilities}
	case modes.AccessClaim:
		g.SidecarEnv = []podspec.Variable{capabilities}
	case modes.AccessCDI:
		g.Annotations = map[string]string{"nvidia.cdi.k8s.io/container." + limits.GuardContainer: "management.nvidia.com/gpu=all"}
	default:
		g.SidecarEnv = []podspec.Variable{{Name: nvidia.EnvVisibleDevices, Value: "all"}, capabilities}
	}
	if w.in.Pod.Spec.RuntimeClassName == nil { // the author's own field is not ours to revert one day
		w.promise.Pod.RuntimeClassName = c.guard.access.RuntimeClass
	}
}

// guardObservation lets the sidecar read the leader's observations, which show it the messages that arrived. Its volume
// is the first: a copy of the pod keeps it in place. Every field that the server would default is written.
func (w *builder) guardObservation(g *promise.Guard) {
	const name = "gpuslice-observed"
	w.promise.Volumes = slices.Insert(w.promise.Volumes, 0, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{DefaultMode: new(corev1.DownwardAPIVolumeSourceDefaultMode),
			Items: []corev1.DownwardAPIVolumeFile{{
				Path:     path.Base(limits.ObservationPath),
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + api.AnnotationObserved + "']"},
			}}}}})
	g.SidecarMounts = append(g.SidecarMounts, corev1.VolumeMount{Name: name, MountPath: limits.ObservationFolder, ReadOnly: true})
}
