package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// strictly is a bare server with the last line in force in the namespace "strict", and not in "loose".
func strictly(t *testing.T) *bare {
	t.Helper()
	s := without(t, cluster.Options{}, "10-namespace.yaml", "55-strict.yaml")
	labels := map[string]string{api.LabelEnforce: api.EnforceStrict}
	for name, labels := range map[string]map[string]string{"strict": labels, "loose": nil} {
		if err := s.Namespace(t.Context(), name, labels); err != nil {
			t.Fatal(err)
		}
	}
	probe := gpuPod("probe")
	probe.Spec.HostPID = true
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := s.Client.CoreV1().Pods("strict").Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "hostPID"), nil
	})
	if err != nil {
		t.Fatalf("the policy is not in force: %v", err)
	}
	return s
}

// gpuPod asks for a GPU and for nothing of ours.
func gpuPod(name string) *corev1.Pod {
	one := corev1.ResourceList{"nvidia.com/gpu.shared": resource.MustParse("1")}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "example.test/app:1", Resources: corev1.ResourceRequirements{Limits: one}}}}}
}

// slicedPod is what the webhook makes of a scenario's pod.
func slicedPod(t *testing.T, s scenarios.Scenario, name string) *corev1.Pod {
	t.Helper()
	in, err := s.Input()
	if err != nil {
		t.Fatal(err)
	}
	in.Namespace.Name = "strict"
	d := policies.Decide(in)
	if d.Outcome != policies.Mutated {
		t.Fatalf("scenario %s: %s: %s", s.Name, d.Outcome, d.Message())
	}
	pod := podedit.Apply(d.Promise, in.Pod)
	pod.Name, pod.Namespace, pod.GenerateName = name, "", ""
	return pod
}

func scenario(t *testing.T, name string) scenarios.Scenario {
	t.Helper()
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no scenario %s", name)
	return scenarios.Scenario{}
}

func TestStrict(t *testing.T) {
	t.Run("denies while the webhook is down", strictWithoutWebhook)
	t.Run("knows recorders by what they run", strictRecorders)
	t.Run("admits every sliced pod", strictScenarios)
	t.Run("ignores pods without GPUs", strictWithoutGPU)
	t.Run("costs little enough", strictCost)
}

// strictWithoutWebhook tries, with nothing of ours running, what each rule of the policy is there for. Each
// pod is also sent to a namespace that is not strict, where it passes: it is the policy that denies it, and nothing else.
func strictWithoutWebhook(t *testing.T) {
	s := strictly(t)
	guarded := scenario(t, "guard-is-injected")
	for _, tt := range []struct {
		name string
		pod  func(*corev1.Pod)
		bare bool // begins with a pod without a slice
		want string
	}{
		{"A8: the host's processes", func(p *corev1.Pod) { p.Spec.HostPID = true }, true, "remove hostPID"},
		{"A8: the host's processes and memory", func(p *corev1.Pod) { p.Spec.HostPID, p.Spec.HostIPC = true, true },
			true, "remove hostPID and hostIPC"},
		{"A8: a privileged container", func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}, true, "privileged from main"},
		{"A1: a container without a GPU gives itself all", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers,
				corev1.Container{Name: "side", Image: "a", Env: []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}}})
		}, true, `write "void", in side`},
		{"A1: no GPU at all, and all of them by a variable", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources, p.Spec.Containers[0].Env = corev1.ResourceRequirements{},
				[]corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}}
		}, true, `write "void", in main`},
		{"a label asks, and there is no promise", func(p *corev1.Pod) {
			p.Labels = map[string]string{api.LabelMemory: "4Gi", api.LabelCompute: "20"}
		}, true,
			"requests a slice (gpuslice.dev/memory, gpuslice.dev/compute) and was given none"},
		{"the default slice asks, and there is no promise",
			func(p *corev1.Pod) { p.Labels = map[string]string{api.LabelShare: api.ShareEnabled} }, true, "requests a slice (gpuslice.dev/share)"},
		{"an annotation asks, and there is no promise", func(p *corev1.Pod) { p.Annotations = map[string]string{api.AnnotationContainers: "{}"} },
			true, "requests a slice (gpuslice.dev/containers)"},
		{"the guard is left out", func(p *corev1.Pod) { p.Spec.InitContainers = nil },
			false, "the pod's promise has a guard, and the pod lacks it"},
		{"the check is left out", func(p *corev1.Pod) { p.Spec.InitContainers = p.Spec.InitContainers[1:] },
			false, "the pod's promise has a guard, and the pod lacks it"},
		{"a program of its own in the guard's place", func(p *corev1.Pod) { p.Spec.InitContainers[1].Image = "example.test/evil" },
			false, "give these containers other names, or create the pod from its own manifest: gpuslice-guard"},
		{"an image that begins like the guard's", func(p *corev1.Pod) { p.Spec.InitContainers[1].Image = "gpuslice/guardian:1" },
			false, "gpuslice-guard"},
		{"the guard's name without a promise", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "gpuslice-guard", Image: "example.test/evil",
				Env: []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}}})
		}, true, "names that begin with gpuslice-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := gpuPod("p")
			if !tt.bare {
				pod = slicedPod(t, guarded, "p")
			}
			tt.pod(pod)
			dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			if _, err := s.Client.CoreV1().Pods("loose").Create(t.Context(), pod, dry); err != nil {
				t.Errorf("where nothing is strict: %v", err)
			}
			_, err := s.Client.CoreV1().Pods("strict").Create(t.Context(), pod, dry)
			wantDenied(t, err, tt.want)
		})
	}
}

// strictRecorders creates pods with the name and command of a recorder that run something else.
func strictRecorders(t *testing.T) {
	s := strictly(t)
	recorded := scenario(t, "framework-pytorch-shim-by-a-file")
	create := func(t *testing.T, namespace string, change func(p *corev1.Pod, recorder *corev1.Container)) error {
		t.Helper()
		pod := slicedPod(t, recorded, "p")
		i := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == limits.RecordContainer+"0" })
		if i < 0 {
			t.Fatal("the scenario has no recorder: nothing is proved")
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		change(pod, &pod.Spec.InitContainers[i])
		_, err := s.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	mount := func(c *corev1.Container, volume, path string) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
	}
	for name, change := range map[string]func(*corev1.Pod, *corev1.Container){
		"a container beside the others": func(p *corev1.Pod, c *corev1.Container) {
			side := *c.DeepCopy()
			side.Name = limits.RecordContainer + "1"
			p.Spec.Containers = append(p.Spec.Containers, side)
		},
		"another name": func(_ *corev1.Pod, c *corev1.Container) { c.Name = limits.RecordContainer + "x" },
		"a GPU": func(_ *corev1.Pod, c *corev1.Container) {
			c.Resources.Limits = gpuPod("g").Spec.Containers[0].Resources.Limits
			c.Resources.Requests = nil
		},
		"a volume of its own for the shim's": func(_ *corev1.Pod, c *corev1.Container) { c.VolumeMounts[0].Name = "own" },
		"a volume within the shim's":         func(_ *corev1.Pod, c *corev1.Container) { mount(c, "own", limits.ShimProgram) },
		"no volume at all":                   func(_ *corev1.Pod, c *corev1.Container) { c.VolumeMounts = nil },
		"arguments":                          func(_ *corev1.Pod, c *corev1.Container) { c.Args = []string{"a"} },
	} {
		t.Run(name, func(t *testing.T) {
			if err := create(t, "loose", change); err != nil {
				t.Errorf("where nothing is strict: %v", err)
			}
			wantDenied(t, create(t, "strict", change), "names that begin with gpuslice-")
		})
	}
	t.Run("with the token that the API server mounts", func(t *testing.T) {
		err := create(t, "strict", func(_ *corev1.Pod, c *corev1.Container) {
			mount(c, "own", "/var/run/secrets/kubernetes.io/serviceaccount")
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// strictScenarios creates what the webhook makes of every scenario: strictness denies none of it.
func strictScenarios(t *testing.T) {
	s := strictly(t)
	if err := classes(t.Context(), s.APIServer); err != nil {
		t.Fatal(err)
	}
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	taken, guarded := 0, 0
	for _, c := range all {
		in, err := c.Input()
		if err != nil || c.Old != nil {
			continue
		}
		d := policies.Decide(in)
		if d.Outcome != policies.Mutated || in.Pod.Spec.HostPID || in.Pod.Spec.HostIPC {
			continue
		}
		pod := slicedPod(t, c, "p")
		if pod.Spec.HostIPC { // clients of GKE's MPS need it, and strict namespaces have none
			continue
		}
		_, err = s.Client.CoreV1().Pods("strict").Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "gpuslice-strict") {
			t.Errorf("%s: %v", c.Name, err)
		}
		if err == nil {
			taken++
			if d.Promise.Guard != nil {
				guarded++
			}
		}
	}
	t.Logf("%d sliced pods were taken, %d of them with a guard", taken, guarded)
	if taken < 100 || guarded < 50 {
		t.Errorf("%d sliced pods were taken, %d of them with a guard: these are too few to prove anything", taken, guarded)
	}
}

// strictWithoutGPU creates pods of every shape that others deny strictness for, but without a GPU.
func strictWithoutGPU(t *testing.T) {
	s := strictly(t)
	plain := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1.27"}}}}
	}
	for name, change := range map[string]func(*corev1.Pod){
		"an ordinary one": func(*corev1.Pod) {},
		"on the host":     func(p *corev1.Pod) { p.Spec.HostPID, p.Spec.HostIPC, p.Spec.HostNetwork = true, true, true },
		"a privileged one": func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		},
		"with our prefix":   func(p *corev1.Pod) { p.Spec.Containers[0].Name = "gpuslice-notes" },
		"with many entries": func(p *corev1.Pod) { p.Spec.Containers[0].Env = variables(1900) },
		"with many containers": func(p *corev1.Pod) {
			for i := range 1999 {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "a"})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := plain()
			change(pod)
			if _, err := s.Client.CoreV1().Pods("strict").Create(t.Context(), pod,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Error(err)
			}
		})
	}
}

// strictCost holds the largest sliced pod against the API server's bound on what CEL may cost: beyond
// it every pod of that size would be denied.
func strictCost(t *testing.T) {
	s := strictly(t)
	pod := slicedPod(t, scenario(t, "guard-is-injected"), "large")
	for i := range policies.MaxContainers - 1 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "a", Env: variables(30)})
	}
	begin := time.Now()
	if _, err := s.Client.CoreV1().Pods("strict").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d containers with 30 variables each: created in %v", policies.MaxContainers, time.Since(begin))
	pod.Name, pod.Spec.HostIPC = "denied", true
	_, err := s.Client.CoreV1().Pods("strict").Create(t.Context(), pod, metav1.CreateOptions{})
	wantDenied(t, err, "remove hostIPC")
}

// wantDenied wants a denial by the policy in these words.
func wantDenied(t *testing.T, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'gpuslice-strict'") || !strings.Contains(err.Error(), words) {
		t.Errorf("want a denial with %q, got: %v", words, err)
	}
}

func variables(n int) (out []corev1.EnvVar) {
	for i := range n {
		out = append(out, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "value"})
	}
	return out
}
