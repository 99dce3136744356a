package promise

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/internal/envvar"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

const guardBinary = "/gpuslice-guard"

// Guard is what the pod carries of the guard: the check before the first container that can reach a GPU, the
// sidecar after it, and what they need of the pod. The containers follow from it.
type Guard struct {
	Image      string            `json:"image"`
	PullPolicy corev1.PullPolicy `json:"pullPolicy"`
	PullSecret string            `json:"pullSecret,omitempty"`
	CPU        string            `json:"cpu"`
	Memory     string            `json:"memory"`
	Storage    string            `json:"storage,omitempty"` // on the node's disk, where a LimitRange holds it
	User       int64             `json:"user"`
	Kill       bool              `json:"kill,omitempty"`   // CAP_KILL
	Shares     bool              `json:"shares,omitempty"` // the process namespace is shared for the guard, not by the author
	Agent      bool              `json:"agent,omitempty"`  // the node's agent enforces the slices, so that there is a check and no sidecar
	Shim       bool              `json:"shim,omitempty"`   // the check brings the shim
	Resource   string            `json:"resource"`         // the GPU resource that the check requests; "": it has a claim
	Count      int64             `json:"count"`
	Claims     []string          `json:"claims,omitempty"` // of the slices: the check has the first, the sidecar all
	Env        []envvar.Literal  `json:"env"`              // of check and sidecar
	CheckEnv   []envvar.Literal  `json:"checkEnv,omitempty"`
	SidecarEnv []envvar.Literal  `json:"sidecarEnv,omitempty"`
	// Mounts are those of check and sidecar, SidecarMounts those of the sidecar alone.
	Mounts        []corev1.VolumeMount `json:"mounts,omitempty"`
	SidecarMounts []corev1.VolumeMount `json:"sidecarMounts,omitempty"`
	Annotations   map[string]string    `json:"annotations,omitempty"`
}

// Limits are those that the guard was given.
func (g *Guard) Limits() (limits.Limits, error) {
	return limits.FromEnv(func(name string) (string, bool) {
		i := slices.IndexFunc(g.Env, func(v envvar.Literal) bool { return v.Name == name })
		if i < 0 {
			return "", false
		}
		return g.Env[i].Value, true
	})
}

// container is what check and sidecar have in common. Every field that the server would default is written, so that the
// pod comes back as it was promised.
func (g *Guard) container(name, command string, own []envvar.Literal) corev1.Container {
	quantities := corev1.ResourceList{corev1.ResourceCPU: quantity.OrZero(g.CPU), corev1.ResourceMemory: quantity.OrZero(g.Memory)}
	if g.Storage != "" {
		quantities[corev1.ResourceEphemeralStorage] = quantity.OrZero(g.Storage)
	}
	c := corev1.Container{
		Name: name, Args: []string{command}, Image: g.Image, ImagePullPolicy: g.PullPolicy,
		Resources:                corev1.ResourceRequirements{Limits: quantities, Requests: maps.Clone(quantities)}, // a Guaranteed pod stays one
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{
			RunAsUser:                new(g.User),
			RunAsNonRoot:             new(g.User != 0),
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if g.Kill {
		c.SecurityContext.Capabilities.Add = []corev1.Capability{"KILL"}
	}
	c.Env = make([]corev1.EnvVar, 0, len(g.Env)+len(own))
	for _, list := range [][]envvar.Literal{g.Env, own} {
		for _, v := range list {
			c.Env = append(c.Env, corev1.EnvVar{Name: v.Name, Value: v.Value})
		}
	}
	for i := range g.Mounts {
		c.VolumeMounts = append(c.VolumeMounts, *g.Mounts[i].DeepCopy())
	}
	return c
}

// Access is how the guard of a pod with the runtime class ("": the node's default) reaches the driver.
func (g *Guard) Access(runtimeClass string) string {
	way := modes.AccessVolume
	switch {
	case len(g.Claims) > 0:
		way = modes.AccessClaim
	case len(g.Annotations) > 0:
		way = modes.AccessCDI
	case slices.ContainsFunc(g.SidecarEnv, func(v envvar.Literal) bool { return v.Name == envvar.VisibleDevices }):
		way = modes.AccessEnv
	}
	return modes.DescribeAccess(way, runtimeClass)
}

// check requests the resource of the first GPU container, or has its claim: the kubelet gives it the very device that the container will
// reuse, with the mounts that the device plugin brings, and takes no further replica. For a pod that the node's agent
// guards it also requests what the agent offers, which the pod keeps until it ends.
func (g *Guard) check() corev1.Container {
	c := g.container(limits.CheckContainer, "check", g.CheckEnv)
	if g.Shim {
		c.Args = append(c.Args, "--shim-folder", limits.ShimFolder)
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: limits.ShimVolume, MountPath: limits.ShimFolder})
	}
	if len(g.Claims) > 0 {
		c.Resources.Claims = []corev1.ResourceClaim{{Name: g.Claims[0]}}
	}
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		if g.Resource != "" {
			list[corev1.ResourceName(g.Resource)] = *resource.NewQuantity(g.Count, resource.DecimalSI)
		}
		if g.Agent {
			list[limits.GuardedResource] = *resource.NewQuantity(1, resource.DecimalSI)
		}
	}
	return c
}

// sidecar is the guard itself, a native sidecar.
func (g *Guard) sidecar() corev1.Container {
	c := g.container(limits.GuardContainer, "run", g.SidecarEnv)
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	c.StartupProbe = guardProbe("--startup", 1, 60)
	// Each exec probe costs the node some 25 ms of CPU, so it runs rarely.
	c.LivenessProbe = guardProbe("--liveness", 30, 3)
	for _, name := range g.Claims {
		c.Resources.Claims = append(c.Resources.Claims, corev1.ResourceClaim{Name: name})
	}
	for i := range g.SidecarMounts {
		c.VolumeMounts = append(c.VolumeMounts, *g.SidecarMounts[i].DeepCopy())
	}
	return c
}

func guardProbe(form string, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{guardBinary, "status", form}}},
		PeriodSeconds: period, FailureThreshold: failures, SuccessThreshold: 1, TimeoutSeconds: 5,
	}
}
