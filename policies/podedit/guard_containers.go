package podedit

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/promise"
)

const guardBinary = "/gpuslice-guard"

// guardContainer holds the common fields of check and sidecar. Every field that the server would default is written, so
// that the pod comes back as it was promised.
func guardContainer(g *promise.Guard, name, command string, own []podspec.Variable) corev1.Container {
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
	for _, list := range [][]podspec.Variable{g.Env, own} {
		for _, v := range list {
			c.Env = append(c.Env, corev1.EnvVar{Name: v.Name, Value: v.Value})
		}
	}
	for i := range g.Mounts {
		c.VolumeMounts = append(c.VolumeMounts, *g.Mounts[i].DeepCopy())
	}
	return c
}

// check requests the resource of the first GPU container, or has its claim: the kubelet gives it the very device that
// the container will reuse, with the mounts that the device plugin brings, and takes no further replica. For a pod that
// the node's agent guards it also requests the agent's resource, which the pod keeps until it ends.
func check(g *promise.Guard) corev1.Container {
	c := guardContainer(g, limits.CheckContainer, "check", g.CheckEnv)
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
func sidecar(g *promise.Guard) corev1.Container {
	c := guardContainer(g, limits.GuardContainer, "run", g.SidecarEnv)
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
