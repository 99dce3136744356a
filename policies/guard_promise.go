package policies

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// PromisedGuard is what the pod carries of the guard: the check before the first container that can reach a GPU, the
// sidecar after it, and what they need of the pod.
type PromisedGuard struct {
	Check      corev1.Container `json:"check"`
	Sidecar    corev1.Container `json:"sidecar"`
	PullSecret string           `json:"pullSecret,omitempty"`
	// Void are the containers without a GPU that must not be given one by the runtime class that the guard needs.
	Void        []string          `json:"void,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

const guardBinary = "/gpuslice-guard"

// guard writes the guard's containers, or why there are none.
func (w *promiseWriter) guard(c *candidate) {
	plan := c.guard
	if plan.why != "" {
		verb := "no guard"
		if plan.inject {
			verb = "the guard only observes"
		}
		if c.strategy.Tier != TierHardware {
			w.note("%s: %s", verb, plan.why)
		}
	}
	if !plan.inject {
		return
	}
	g := &PromisedGuard{PullSecret: w.in.Guard.PullSecret}
	variables := w.guardLimits(c).Env()
	base := guardContainer(w.in.Guard, plan, variables)
	w.guardMounts(c, &base)
	g.Check, g.Sidecar = checkContainer(base, c), sidecarContainer(base)
	w.guardAccess(g)
	w.promise.Guard = g
}

// guardLimits is the contract that the guard reads.
func (w *promiseWriter) guardLimits(c *candidate) limits.Limits {
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
	if policy.MaxEnds > 0 {
		l.MaxEnds = policy.MaxEnds
	}
	if policy.EndsWindow.Duration > 0 {
		l.EndsWindow = policy.EndsWindow.Duration
	}
	if policy.MPSEnding != "" {
		l.MPSEnding = limits.Ending(policy.MPSEnding)
	}
	if !w.in.Pod.Spec.HostNetwork { // two pods of one node cannot both listen on it
		l.MetricsPort = policy.MetricsPort
	}
	if c.guard.holds {
		l.MinDriver = firstGuardRelease
	}
	l.ExpectMPS = c.strategy.Name == "mps"
	if c.pool().MPSProvider == MPSHostDaemon {
		l.MPSPipeDirectory = w.in.Policy.MPS.PipeDirectory
	}
	for i := range c.containers {
		p := &c.containers[i]
		if p.size.limit > 0 {
			l.Containers = append(l.Containers, limits.Container{Name: p.request.Name, SliceBytes: p.size.slice.Bytes(), LimitBytes: p.size.limit.Bytes(), GPUs: int(p.request.GPUs)})
		}
	}
	l.MinDeviceBytes, l.MaxDeviceBytes = deviceBounds(c)
	return l
}

// deviceBounds are the sizes of a device on which the plan still holds: those of its pools, and 2 % for what a driver
// keeps for itself.
func deviceBounds(c *candidate) (low, high int64) {
	for i := range c.containers {
		t := c.containers[i].pool.Total().Bytes()
		if t == 0 {
			return 0, 0
		}
		if low == 0 || t < low {
			low = t
		}
		high = max(high, t)
	}
	return low - low/50, high + high/50
}

// guardContainer is what check and sidecar have in common. Every field that the server would default is written, so
// that the pod comes back as it was promised.
func guardContainer(s *GuardSettings, plan guardPlan, variables []limits.Variable) corev1.Container {
	quantities := corev1.ResourceList{corev1.ResourceCPU: quantityOr(s.CPU, "20m"), corev1.ResourceMemory: quantityOr(s.Memory, "64Mi")}
	security := &corev1.SecurityContext{
		RunAsUser:                &plan.user,
		RunAsNonRoot:             new(plan.user != 0),
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if plan.kill {
		security.Capabilities.Add = []corev1.Capability{"KILL"}
	}
	pull := s.PullPolicy
	if pull == "" {
		pull = corev1.PullIfNotPresent
	}
	c := corev1.Container{
		Image: s.Image, ImagePullPolicy: pull, SecurityContext: security,
		Resources:                corev1.ResourceRequirements{Limits: quantities, Requests: quantities.DeepCopy()},
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	for _, v := range variables {
		c.Env = append(c.Env, corev1.EnvVar{Name: v.Name, Value: v.Value})
	}
	return c
}

func quantityOr(text, fallback string) resource.Quantity {
	if q, err := resource.ParseQuantity(text); err == nil {
		return q
	}
	return resource.MustParse(fallback)
}

// checkContainer asks for the resource of the first GPU container: the kubelet gives it the very device that the
// container will reuse, with the mounts that the device plugin brings, and takes no further replica.
func checkContainer(base corev1.Container, c *candidate) corev1.Container {
	out := *base.DeepCopy()
	out.Name = limits.CheckContainer
	out.Args = []string{"check"}
	first := &c.containers[0]
	for _, list := range []corev1.ResourceList{out.Resources.Limits, out.Resources.Requests} {
		list[corev1.ResourceName(first.pool.Resource)] = *resource.NewQuantity(first.request.GPUs, resource.DecimalSI)
	}
	return out
}

func sidecarContainer(base corev1.Container) corev1.Container {
	out := *base.DeepCopy()
	out.Name = limits.GuardContainer
	out.Args = []string{"run"}
	out.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	out.StartupProbe = guardProbe("--startup", 1, 60)
	// Each exec probe costs the node some 25 ms of CPU, so it is asked rarely.
	out.LivenessProbe = guardProbe("--liveness", 30, 3)
	return out
}

func guardProbe(form string, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{guardBinary, "status", form}}},
		PeriodSeconds: period, FailureThreshold: failures, SuccessThreshold: 1, TimeoutSeconds: 5,
	}
}

// guardMounts gives check and sidecar the pipe of our own MPS daemon.
func (w *promiseWriter) guardMounts(c *candidate, base *corev1.Container) {
	if c.pool().MPSProvider != MPSHostDaemon {
		return
	}
	injected := c.strategy.Inject(SliceGrant{Pool: c.pool(), MPS: w.in.Policy.MPS, GPUs: 1})
	base.VolumeMounts = injected.Mounts
	for _, v := range injected.Env {
		if v.Name == VarMPSPipe || v.Name == VarMPSLog {
			base.Env = append(base.Env, corev1.EnvVar{Name: v.Name, Value: v.Value})
		}
	}
}

// guardAccess gives the sidecar NVML without a replica of its own.
func (w *promiseWriter) guardAccess(g *PromisedGuard) {
	capabilities := corev1.EnvVar{Name: driverCapabilities, Value: "compute,utility"}
	g.Check.Env = append(g.Check.Env, capabilities)
	switch w.in.Policy.Guard.Access {
	case accessVolume:
		device := corev1.HostPathCharDev
		w.promise.Volumes = append(w.promise.Volumes, corev1.Volume{Name: "gpuslice-devices", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/dev/null", Type: &device}}})
		g.Sidecar.VolumeMounts = append(g.Sidecar.VolumeMounts, corev1.VolumeMount{Name: "gpuslice-devices", MountPath: "/var/run/nvidia-container-devices/all"})
		g.Sidecar.Env = append(g.Sidecar.Env, capabilities)
	case accessCDI:
		g.Annotations = map[string]string{"nvidia.cdi.k8s.io/container." + limits.GuardContainer: "management.nvidia.com/gpu=all"}
	default:
		g.Sidecar.Env = append(g.Sidecar.Env, corev1.EnvVar{Name: visibleDevices, Value: "all"}, capabilities)
	}
	w.guardRuntimeClass(g)
}

// guardRuntimeClass writes the runtime class that the guard's access needs. It holds for the whole pod, and CUDA images
// say NVIDIA_VISIBLE_DEVICES=all by themselves: containers without a GPU are given "void".
func (w *promiseWriter) guardRuntimeClass(g *PromisedGuard) {
	name := w.in.Policy.Guard.RuntimeClassName
	if name == "" || w.in.Pod.Spec.RuntimeClassName != nil && *w.in.Pod.Spec.RuntimeClassName != name {
		return
	}
	w.promise.Pod.RuntimeClassName = name
	for c := range podContainers(&w.in.Pod.Spec) {
		if w.promise.container(c.Name) == nil {
			g.Void = append(g.Void, c.Name)
		}
	}
}
