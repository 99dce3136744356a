package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// hog is a GPU container that goes past 8 GiB.
func hog() corev1.Container { return sliced("trainer", "hold 2GiB", "wait 2s", "hold 9GiB") }

// strictly is what Pod Security restricted asks of a container.
func strictly(c corev1.Container, user int64) corev1.Container {
	yes, no := true, false
	c.SecurityContext = &corev1.SecurityContext{RunAsUser: &user, RunAsNonRoot: &yes, AllowPrivilegeEscalation: &no,
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	return c
}

func TestHogOfEveryKindOfPod(t *testing.T) {
	t.Parallel()
	t.Run("is terminated", func(t *testing.T) {
		t.Parallel()
		host, always := false, corev1.ContainerRestartPolicyAlways
		tests := []struct {
			name   string
			labels []string // of the namespace
			pod    func(*corev1.Pod)
			user   int64 // of the guard
		}{
			{"a user namespace", nil, func(p *corev1.Pod) { p.Spec.HostUsers = &host }, 0},
			{"a user that is not root", nil, func(p *corev1.Pod) { p.Spec.Containers[0] = strictly(hog(), 1000) }, 0},
			{"a namespace under Pod Security restricted", []string{"pod-security.kubernetes.io/enforce=restricted"},
				func(p *corev1.Pod) { p.Spec.Containers[0] = strictly(hog(), 1000) }, 1000},
			{"a namespace under Pod Security baseline", []string{"pod-security.kubernetes.io/enforce=baseline"}, func(*corev1.Pod) {}, 0},
			{"a native sidecar of a mesh before it", nil, func(p *corev1.Pod) {
				proxy := tenant("istio-proxy")
				proxy.RestartPolicy = &always
				p.Spec.InitContainers = []corev1.Container{proxy}
			}, 0},
		}
		for _, tc := range tests {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, "", fakegpu.Config{Devices: devices}, tc.labels...)
				p := once(slice("8Gi", "hog", hog()))
				tc.pod(p)
				created := s.create(p)
				if g := containerOf(created, limits.GuardContainer); g == nil || *g.SecurityContext.RunAsUser != tc.user {
					t.Fatalf("the guard is %+v, want user %d", g, tc.user)
				}
				s.awaitSaid("hog", "termination result", "gpuslice terminated tenant")
				s.awaitEnd("hog", "trainer")
				// The sidecars are no reason to stay.
				s.awaitPhase("hog", corev1.PodFailed)
			})
		}
	})
}

func TestSidecars(t *testing.T) {
	t.Parallel()
	t.Run("a pod with those of a mesh and of gpuslice completes", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		always := corev1.ContainerRestartPolicyAlways
		proxy := tenant("istio-proxy")
		proxy.RestartPolicy = &always
		p := once(slice("8Gi", "meshed", sliced("trainer", "hold 4GiB", "wait 1s", "leave")))
		p.Spec.InitContainers = []corev1.Container{proxy}
		s.create(p)
		s.awaitPhase("meshed", corev1.PodSucceeded)
	})
}

func TestInitContainer(t *testing.T) {
	t.Parallel()
	t.Run("one that uses the GPU is limited too", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		p := once(slice("8Gi", "warm", sliced("trainer", "hold 4GiB")))
		p.Spec.InitContainers = []corev1.Container{tenant("unpack", "leave"), sliced("warmup", "hold 9GiB")}
		created := s.create(p)
		var names []string
		for _, c := range created.Spec.InitContainers {
			names = append(names, c.Name)
		}
		if got, want := strings.Join(names, " "), "unpack gpuslice-check gpuslice-guard warmup"; got != want {
			t.Errorf("init containers are %s, want %s", got, want)
		}
		s.awaitSaid("warm", "termination result", "gpuslice terminated tenant", "in warmup")
		s.awaitPhase("warm", corev1.PodFailed)
	})
}

func TestTwoContainers(t *testing.T) {
	t.Parallel()
	t.Run("are each limited to their own slice", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		p := plain("pair", sliced("small", "hold 2GiB", "wait 2s", "hold 6GiB"), sliced("large", "hold 9GiB"))
		p.Annotations[api.AnnotationContainers] = `{"small": {"memory": "4Gi"}, "large": {"memory": "10Gi"}}`
		s.create(once(p))
		s.awaitSaid("pair", "termination result", "gpuslice terminated", "in small: 6Gi of 4Gi")
		s.awaitEnd("pair", "small")
		s.awaitBeats("pair", "large", 10)
		s.neverNoticed("pair", "large", 20)
	})
}

func TestImageWithPID1(t *testing.T) {
	t.Parallel()
	t.Run("starts without a guard, and the pod shows why", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		c := asking(corev1.Container{Name: "server", Image: s6Name})
		p := s.create(slice("8Gi", "s6", c))
		if containerOf(p, limits.GuardContainer) != nil {
			t.Error("a guard was injected")
		}
		planned := p.Annotations[api.AnnotationPlanned]
		if want := "needs to be PID 1"; !strings.Contains(planned, want) {
			t.Errorf("planned is %s, want %q in it", planned, want)
		}
		s.awaitRunning("s6")
		s.awaitLine("s6", "server", "the start", func(line string) bool { return line == "up" })
	})
}
