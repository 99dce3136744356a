package observe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// noon is when the guard of a fixture started.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// subject is a pod as the webhook really plans it, on the node that it was planned for.
type subject struct {
	pod     *corev1.Pod
	node    *corev1.Node
	promise *promise.Promise
	notices []Notice

	agentAway   bool   // the node's agent does not enforce
	notEnforced string // why it does not enforce this pod's slice
	instances   []string
}

// plans are the fixtures: the files of their nodes, and policy documents.
var plans = map[string]struct{ nodes, policy, image string }{
	"time-slicing": {"l4-timeslicing-renamed", "strategies: [time-slicing]\n", "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"},
	"mps":          {"h100-mps-plugin", "strategies: [mps]\n", "example.test/app:1"},
	"host daemon": {"h100-host-daemon", "strategies: [mps]\npools:\n  declared:\n  - {name: daemons, selector: {kubernetes.io/hostname: h100-2}, resource: nvidia.com/gpu.shared, " +
		"strategy: mps, mpsProvider: host-daemon, replicas: 8, deviceMemory: 81559Mi, driver: 580.95.05}\n", "example.test/app:1"},
	"driver": {"h200-driver-limits", "strategies: [time-slicing]\npools:\n  declared:\n  - {name: h200, selector: {kubernetes.io/hostname: h200-1}, resource: nvidia.com/gpu.shared, " +
		"strategy: time-slicing, replicas: 8, deviceMemory: 143771Mi, driver: 615.71.09, driverLimits: true}\n", "example.test/app:1"},
	"mig":       {"a100-mig-mixed", "strategies: [mig]\n", "example.test/app:1"},
	"claim":     {"dra-h100", "strategies: [mig, claim]\n", "example.test/app:1"},
	"agent":     {"l4-timeslicing-renamed", "strategies: [time-slicing]\nguard: {mode: agent}\n", "example.test/app:1"},
	"unguarded": {"l4-timeslicing-renamed", "strategies: [time-slicing]\nguard: {enabled: false}\n", "example.test/app:1"},
}

// planned is a pod fresh from admission.
func planned(t *testing.T, plan string) *subject {
	t.Helper()
	p := plans[plan]
	of, err := scenarios.Published([]string{p.nodes}, []string{"nvidia-h100-mig-and-shares"})
	if err != nil {
		t.Fatal(err)
	}
	policy, problems := config.Parse("gpuslice-system/default", []byte("apiVersion: gpuslice.dev/v1\n"+p.policy))
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: scenarios.Namespace, UID: types.UID("uid-1"),
			Labels: map[string]string{api.LabelMemory: "4Gi"}},
		Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "trainer", Image: p.image, Resources: corev1.ResourceRequirements{Limits: gpus("1")}}}},
	}
	d := policies.Decide(policies.Input{
		Pod: pod, Namespace: api.Namespace{Name: scenarios.Namespace}, Policy: policy,
		Pools: of.Pools(policy.Pools, nil), Guard: scenarios.Guard(),
	})
	if d.Promise == nil {
		t.Fatalf("%s: the pod is not planned: %s %v", plan, d.Message(), d.Warnings)
	}
	return &subject{pod: podedit.Apply(d.Promise, pod), node: of.Nodes[0], promise: d.Promise}
}

// started is the pod once all of it runs on its node.
func started(t *testing.T, plan string) *subject {
	t.Helper()
	s := planned(t, plan)
	s.pod.Spec.NodeName = s.node.Name
	s.pod.Status.Phase = corev1.PodRunning
	if g := s.promise.Guard; g != nil {
		s.pod.Status.InitContainerStatuses = []corev1.ContainerStatus{
			{Name: limits.CheckContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
			{Name: limits.GuardContainer, Started: new(true), State: running(noon)},
		}
		if g.Agent {
			s.pod.Status.InitContainerStatuses = s.pod.Status.InitContainerStatuses[:1]
		}
	}
	s.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "trainer", Started: new(true), State: running(noon)}}
	return s
}

func (s *subject) observe() Observation { return Observe(s.pod, s.place(), s.promise, s.notices) }

func (s *subject) place() Place { return Place{s.node, !s.agentAway, s.notEnforced, s.instances} }

// set writes labels of the node.
func (s *subject) set(pairs ...string) {
	s.node = s.node.DeepCopy()
	for i := 0; i < len(pairs); i += 2 {
		s.node.Labels[pairs[i]] = pairs[i+1]
	}
}

func (s *subject) check() *corev1.ContainerStatus   { return &s.pod.Status.InitContainerStatuses[0] }
func (s *subject) guard() *corev1.ContainerStatus   { return &s.pod.Status.InitContainerStatuses[1] }
func (s *subject) trainer() *corev1.ContainerStatus { return &s.pod.Status.ContainerStatuses[0] }

// hear adds the notice of a message of the guard, that long after its start.
func (s *subject) hear(after time.Duration, message string) {
	s.notices = append(s.notices, NoticesOf(event(s.pod, noon.Add(after), message))...)
}

// event is the Event that a kubelet makes of a guard's liveness probe that fails.
func event(pod *corev1.Pod, at time.Time, message string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, GenerateName: pod.Name + "-"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			FieldPath: "spec.initContainers{gpuslice-guard}"},
		Reason: "Unhealthy", Type: corev1.EventTypeWarning, Message: "Liveness probe failed: " + message + "\n",
		Source: corev1.EventSource{Component: "kubelet", Host: "l4-1"}, ReportingController: "kubelet", ReportingInstance: "l4-1",
		FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at), Count: 1,
	}
}

func gpus(count string) corev1.ResourceList {
	return corev1.ResourceList{api.ResourceGPU: quantity(count)}
}

func running(since time.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}
}

func terminated(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

func waiting(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}
