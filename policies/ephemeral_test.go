package policies_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
)

// livePods are pods that ephemeral containers are added to, with the policy of their namespace.
func livePods(t *testing.T) map[string]policies.Input {
	t.Helper()
	in, _ := brought(t, "")
	in.Pod = rewritten(t, in)
	whole, pod := brought(t, "")
	whole.Policy.Mode = modes.OptIn
	whole.Pod = pod
	none, pod := brought(t, "")
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	none.Pod = pod
	ungoverned, pod := brought(t, "")
	ungoverned.Policy, ungoverned.Pod = nil, pod
	audited, pod := brought(t, "")
	audited.Policy.EnforcementMode, audited.Pod = api.EnforceAudit, pod
	return map[string]policies.Input{"in a slice": in, "with a whole GPU": whole,
		"without a GPU": none, "ungoverned": ungoverned, "audited": audited}
}

func debugger(edit func(*corev1.EphemeralContainerCommon)) corev1.EphemeralContainer {
	c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "busybox"}}
	if edit != nil {
		edit(&c.EphemeralContainerCommon)
	}
	return c
}

// adding is the update that adds the container to the pod of in.
func adding(in policies.Input, c corev1.EphemeralContainer) (policies.Input, *corev1.Pod) {
	old := in.Pod
	in.Pod = old.DeepCopy()
	in.Pod.Spec.EphemeralContainers = append(in.Pod.Spec.EphemeralContainers, c)
	return in, old
}

func env(pairs ...string) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		out = append(out, corev1.EnvVar{Name: name, Value: value})
	}
	return out
}

func TestEphemeral(t *testing.T) {
	t.Parallel()
	t.Run("gets no device", func(t *testing.T) {
		t.Parallel()
		all := []string{"A=a", "NVIDIA_VISIBLE_DEVICES=all", "CUDA_MPS_PIPE_DIRECTORY=/x",
			"NVIDIA_GPU_MEMORY_LIMIT=9", "GPUSLICE_FRACTION=1", "NVIDIA_IMEX_CHANNELS=0"}
		hidden := env("A=a", "NVIDIA_VISIBLE_DEVICES=void")
		for name, c := range map[string]struct{ naming, plain []corev1.EnvVar }{
			"in a slice":       {hidden, env("NVIDIA_VISIBLE_DEVICES=void")},
			"with a whole GPU": {hidden, env("NVIDIA_VISIBLE_DEVICES=void")},
			"without a GPU":    {hidden, nil},
			"ungoverned":       {env(all...), nil},
			"audited":          {env(all...), nil},
		} {
			for _, tt := range []struct{ env, want []corev1.EnvVar }{{env(all...), c.naming}, {nil, c.plain}} {
				in, old := adding(livePods(t)[name], debugger(func(c *corev1.EphemeralContainerCommon) { c.Env = tt.env }))
				after := updatedPod(t, in, old, "ephemeralcontainers")
				if diff := cmp.Diff(tt.want, after.Spec.EphemeralContainers[0].Env); diff != "" {
					t.Errorf("%s: (-want +got)\n%s", name, diff)
				}
				in.Pod = after
				if found := verifyUpdate(t, in, old, "ephemeralcontainers"); len(found) > 0 {
					t.Errorf("%s: denied after it was put right: %v", name, found)
				}
				if again := updatedPod(t, in, old, "ephemeralcontainers"); again != after {
					t.Errorf("%s: put right twice", name)
				}
			}
		}
	})
	t.Run("what is there stays", func(t *testing.T) {
		t.Parallel()
		in := livePods(t)["in a slice"]
		in.Pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger(func(c *corev1.EphemeralContainerCommon) {
			c.Name, c.Env, c.SecurityContext = "older", env("NVIDIA_VISIBLE_DEVICES=all"), &corev1.SecurityContext{Privileged: new(true)}
		})}
		in, old := adding(in, debugger(func(c *corev1.EphemeralContainerCommon) { c.Env = env("NVIDIA_VISIBLE_DEVICES=void") }))
		if after := updatedPod(t, in, old, "ephemeralcontainers"); after != in.Pod {
			t.Errorf("changed: %v", after.Spec.EphemeralContainers)
		}
		if found := verifyUpdate(t, in, old, "ephemeralcontainers"); len(found) > 0 {
			t.Errorf("denied: %v", found)
		}
	})
	t.Run("may not carry devices, privileges or our names", func(t *testing.T) {
		t.Parallel()
		for want, edit := range map[string]func(*corev1.EphemeralContainerCommon){
			`its env has to say NVIDIA_VISIBLE_DEVICES: "void"`: func(c *corev1.EphemeralContainerCommon) { c.Env = nil },
			"nothing that begins with GPUSLICE_, CUDA_MPS_": func(c *corev1.EphemeralContainerCommon) {
				c.Env = append(c.Env, env("CUDA_MPS_PIPE_DIRECTORY=/x")...)
			},
			`"gpuslice-debugger" has a name that belongs to gpuslice`: func(c *corev1.EphemeralContainerCommon) { c.Name = "gpuslice-debugger" },
			"is privileged": func(c *corev1.EphemeralContainerCommon) {
				c.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
			},
			`adds the capabilities "SYS_PTRACE"`: func(c *corev1.EphemeralContainerCommon) {
				c.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_PTRACE"}}}
			},
			`mounts a volume at "/var/run/nvidia-container-devices/all", which takes devices`: func(c *corev1.EphemeralContainerCommon) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: "x", MountPath: "/var/run/nvidia-container-devices/all"}}
			},
			`mounts the volume "gpuslice-mps-pipe", which belongs to gpuslice`: func(c *corev1.EphemeralContainerCommon) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: "gpuslice-mps-pipe", MountPath: "/x"}}
			},
			`mounts the volume "users" of the node, of which each mount has to be readOnly`: func(c *corev1.EphemeralContainerCommon) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: "users", MountPath: "/x"}}
			},
			`sets securityContext.seLinuxOptions.type "spc_t"`: func(c *corev1.EphemeralContainerCommon) {
				c.SecurityContext = &corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}
			},
		} {
			for name, denied := range map[string]bool{
				"in a slice": true, "ungoverned": false,
				"with a whole GPU": strings.Contains(want, "begins with") ||
					strings.Contains(want, "has to say") || strings.Contains(want, "takes devices"),
				"without a GPU": strings.Contains(want, "takes devices"),
			} {
				live := livePods(t)[name]
				live.Pod.Spec.Volumes = append(live.Pod.Spec.Volumes,
					corev1.Volume{Name: "users", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/passwd"}}})
				in, old := adding(live, debugger(func(c *corev1.EphemeralContainerCommon) {
					c.Env = env("NVIDIA_VISIBLE_DEVICES=void")
					edit(c)
				}))
				found := verifyUpdate(t, in, old, "ephemeralcontainers")
				switch {
				case !denied && len(found) > 0:
					t.Errorf("%s, %s: denied: %v", name, want, found)
				case denied && (len(found) != 1 || !strings.Contains(found[0].String(), want) ||
					!strings.Contains(found[0].String(), "kubectl debug --profile=baseline")):
					t.Errorf("%s: want %q, got %v", name, want, found)
				}
			}
		}
	})
}

func TestResize(t *testing.T) {
	t.Parallel()
	t.Run("the pod gets no limit of memory that the guard shares", func(t *testing.T) {
		t.Parallel()
		in := livePods(t)["in a slice"]
		for resourceName, denied := range map[corev1.ResourceName]bool{corev1.ResourceMemory: true, corev1.ResourceCPU: false} {
			next := in
			next.Pod = in.Pod.DeepCopy()
			next.Pod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{resourceName: resource.MustParse("192Mi")}}
			found := verifyUpdate(t, next, in.Pod, "resize")
			if got := len(found) == 1 && strings.Contains(found[0].String(), "spec.resources.limits.memory"); got != denied {
				t.Errorf("%s: %v", resourceName, found)
			}
			if found := verifyUpdate(t, next, next.Pod, "resize"); len(found) > 0 {
				t.Errorf("%s, which the pod had: %v", resourceName, found)
			}
		}
	})
	t.Run("only the guard is not resized", func(t *testing.T) {
		t.Parallel()
		in := livePods(t)["in a slice"]
		for _, tt := range []struct {
			container string
			denied    bool
		}{{"gpuslice-guard", true}, {"gpuslice-check", true}, {"main", false}} {
			updated := in.Pod.DeepCopy()
			for _, list := range [][]corev1.Container{updated.Spec.InitContainers, updated.Spec.Containers} {
				for i := range list {
					if list[i].Name == tt.container {
						list[i].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1m")
					}
				}
			}
			next := in
			next.Pod = updated
			found := verifyUpdate(t, next, in.Pod, "resize")
			if denied := len(found) == 1 && strings.Contains(found[0].String(), tt.container+`" belongs to gpuslice`); denied != tt.denied {
				t.Errorf("%s: %v", tt.container, found)
			}
			bare := in.Pod.DeepCopy()
			bare.Annotations = nil
			if found := verifyUpdate(t, next, bare, "resize"); len(found) > 0 {
				t.Errorf("%s in a pod without slices: %v", tt.container, found)
			}
		}
	})
}
