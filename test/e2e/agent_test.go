package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

// agentNode is what tenants of the agent's tests name, so that it counts no others.
const agentNode = "agent"

// agentGPU is what the agent sees. Its driver is one that shows nothing to a guard in a pod. On device 2 nothing runs; what runs on the
// others it does not report.
var agentGPU = fakegpu.Config{Devices: devices, Node: agentNode, Driver: "535.104.05", On: map[int]fakegpu.Fault{2: {Usage: "none"}}}

var startAgent = sync.OnceValue(func() error {
	n, err := start()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return n.StartAgent(ctx, agentGPU)
})

// withAgent is newStage on a node whose agent enforces.
func withAgent(t *testing.T, labels ...string) *stage {
	t.Helper()
	s := newStage(t, "agent", fakegpu.Config{Devices: devices}, labels...)
	if err := startAgent(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the agent:\n%s", s.logsOfAgents())
		}
	})
	return s
}

// byAgent is a container that the agent counts.
func byAgent(name string, steps ...string) corev1.Container {
	return sliced(name, append([]string{"node " + agentNode, "device 0"}, steps...)...)
}

// awaitTerminated returns the agent's Event about a process that it terminated.
func (s *stage) awaitTerminated(pod string) *corev1.Event {
	s.Helper()
	return s.awaitEvent(pod, "what was terminated",
		func(e *corev1.Event) bool { return e.Reason == observe.ReasonTerminated && e.Source.Host != "" })
}

// TestAgentAway runs before the parallel tests: the node has no agent at first, and the kubelet is restarted.
func TestAgentAway(t *testing.T) {
	t.Run("no pod starts where no agent is, and those that run go on", func(t *testing.T) {
		s := newStage(t, "agent", fakegpu.Config{Devices: devices})
		s.create(slice("4Gi", "first", byAgent("trainer", "hold 1GiB")))
		s.awaitUnschedulable("first")
		s = withAgent(t)
		began := status(s.awaitRunning("first"), "trainer")

		s.placeAgents("nowhere")
		s.awaitGuarded(0)
		if n, err := s.node.Client.CoreV1().Nodes().Get(t.Context(), box.NodeName, metav1.GetOptions{}); err != nil ||
			n.Status.Capacity.Name(limits.GuardedResource, resource.DecimalSI).Value() != 1024 {
			t.Errorf("the node's capacity while its agent is away is %v (%v)", n.Status.Capacity, err)
		}
		s.create(slice("4Gi", "second", byAgent("trainer", "hold 1GiB")))
		s.awaitUnschedulable("second")
		if now := status(s.get("first"), "trainer"); now.State.Running == nil || now.ContainerID != began.ContainerID {
			t.Errorf("without an agent the first pod is %+v, began as %+v", now, began)
		}
		s.placeAgents("true")
		s.awaitRunning("second")

		offered := func() int { return strings.Count(s.logsOfAgents(), "the kubelet offers the resource") }
		before := offered()
		if err := s.node.RestartKubelet(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := func(context.Context) (bool, error) { return offered() > before, nil }
		if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, again); err != nil {
			t.Fatalf("the agent's registration with the new kubelet: %v", err)
		}
		s.awaitGuarded(1024)
		// For the tests after this one. The kubelet has removed the sockets of before by now.
		if err := offerMPS(t.Context(), s.node, "mps-again"); err != nil {
			t.Fatal(err)
		}
		s.create(slice("4Gi", "third", byAgent("trainer", "hold 1GiB")))
		s.awaitRunning("third")
	})
}

// awaitUnschedulable returns once the scheduler finds no node that offers an agent.
func (s *stage) awaitUnschedulable(pod string) {
	s.Helper()
	s.awaitPod(pod, "the scheduler's reason", func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
				strings.Contains(c.Message, "Insufficient "+limits.GuardedResource)
		})
	})
}

// awaitGuarded returns once the node offers the resource so many times.
func (s *stage) awaitGuarded(count int64) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), within)
	defer cancel()
	if err := s.node.AwaitAllocatable(ctx, limits.GuardedResource, count); err != nil {
		s.Fatal(err)
	}
}

// placeAgents places agents on the nodes of which nvidia.com/gpu.present is as given.
func (s *stage) placeAgents(present string) {
	s.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeSelector":{"nvidia.com/gpu.present":%q}}}}}`, present)
	if _, err := s.node.Client.AppsV1().DaemonSets(api.SystemNamespace).Patch(s.Context(), install.AgentName, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

// logsOfAgents are what the agents that run have logged.
func (s *stage) logsOfAgents() string {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	out, err := s.node.Kubectl(ctx, "logs", "--namespace="+api.SystemNamespace, "--selector=app.kubernetes.io/component=agent", "--tail=-1")
	if err != nil {
		s.Logf("the agents' logs: %v", err)
	}
	return out
}

func TestAgentHog(t *testing.T) {
	t.Parallel()
	t.Run("is terminated from outside its pod, and nobody with the same PID", func(t *testing.T) {
		t.Parallel()
		s := withAgent(t)
		s.create(slice("8Gi", "quiet", byAgent("trainer", "hold 7GiB")))
		quiet := s.awaitRunning("quiet")
		name := s.job("hog", once(slice("8Gi", "hog", byAgent("trainer", "hold 2GiB", "wait 2s", "grow 2GiB 9GiB 2s"), tenant("beside"))))
		hog := s.awaitRunning(name)
		if containerOf(hog, limits.GuardContainer) != nil ||
			containerOf(hog, limits.CheckContainer) == nil || hog.Spec.ShareProcessNamespace != nil {
			t.Errorf("the pod has containers %v, shareProcessNamespace %v", hog.Spec.InitContainers, hog.Spec.ShareProcessNamespace)
		}
		for _, p := range []*corev1.Pod{quiet, hog} {
			if number := s.numberInPod(s.processes(p, "trainer")[0]); number != 1 {
				t.Errorf("the trainer of %s is process %d of its pod", p.Name, number)
			}
		}
		if end := s.awaitEnd(name, "trainer"); end.ExitCode != 143 && end.ExitCode != 137 {
			t.Errorf("the hog ended as %+v", end)
		}
		told := s.awaitTerminated(name)
		sentence := regexp.MustCompile(
			`^gpuslice terminated tenant \(pid \d+, [89](\.\d)?Gi\) in trainer: [89](\.\d)?Gi of 8Gi on GPU-\S+ for \d.*; use less memory`)
		if !sentence.MatchString(told.Message) || told.Type != corev1.EventTypeWarning {
			t.Errorf("the Event says %q, want %s", told.Message, sentence)
		}
		s.awaitEvent(name, "a warning before", func(e *corev1.Event) bool { return e.Reason == "GPUSliceNearLimit" })
		for _, reason := range []string{"GPUSliceNearLimit", observe.ReasonTerminated} {
			s.awaitEvent("hog", reason+" on the owner", func(e *corev1.Event) bool {
				return e.Reason == reason && strings.HasPrefix(e.Message, "pod "+name+": ") &&
					(reason != observe.ReasonTerminated || strings.HasSuffix(e.Message, told.Message))
			})
		}
		s.neverNoticed("quiet", "trainer", 50)
		s.neverNoticed(name, "beside", 30)
	})
}

func TestAgentWhereNoSidecarCanBe(t *testing.T) {
	t.Parallel()
	t.Run("an image that needs PID 1, and its hog", func(t *testing.T) {
		t.Parallel()
		s := withAgent(t)
		notebook := shell("notebook", "")
		notebook.Image, notebook.Args = s6Name, nil
		s.create(once(slice("8Gi", "notebook", byAgent("trainer", "hold 9GiB"), notebook)))
		s.awaitTerminated("notebook")
		s.awaitPod("notebook", "the image that needs PID 1, running", func(p *corev1.Pod) bool {
			return status(p, "notebook").State.Running != nil
		})
	})
	t.Run("a user namespace", func(t *testing.T) {
		t.Parallel()
		s := withAgent(t)
		p := once(slice("8Gi", "userns", byAgent("trainer", "hold 9GiB")))
		p.Spec.HostUsers = new(false)
		s.create(p)
		s.awaitUserNamespace("userns")
		s.awaitTerminated("userns")
	})
	t.Run("a namespace with Pod Security restricted", func(t *testing.T) {
		t.Parallel()
		s := withAgent(t, "pod-security.kubernetes.io/enforce=restricted")
		p := once(slice("8Gi", "restricted", byAgent("trainer", "hold 9GiB")))
		user := int64(1000)
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: &user,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: new(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
		s.create(p)
		s.awaitTerminated("restricted")
	})
}

// awaitUserNamespace returns once the pod has a sandbox, and skips the test where kernel or runtime can make none.
func (s *stage) awaitUserNamespace(pod string) {
	s.Helper()
	why := ""
	s.awaitEvent(pod, "a sandbox, or why there is none", func(e *corev1.Event) bool {
		if e.Reason == "FailedCreatePodSandBox" {
			why = e.Message
		}
		return why != "" || e.Reason == "Pulled" || e.Reason == "Created"
	})
	if why != "" {
		s.Skip("hostUsers: false does not work on this node: " + why)
	}
}

// agents are the processes of the node's agent.
func (s *stage) agents() []int {
	s.Helper()
	return s.processes(s.agentPod(), "agent")
}

func TestAgentObserved(t *testing.T) {
	t.Parallel()
	t.Run("the pod is enforced by its node's agent", func(t *testing.T) {
		t.Parallel()
		s := withAgent(t)
		s.create(slice("8Gi", "quiet", byAgent("trainer", "hold 7GiB")))
		s.awaitPod("quiet", "what is observed", func(p *corev1.Pod) bool {
			o, err := observe.DecodeObservation(p.Annotations[api.AnnotationObserved])
			return err == nil && o.State == observe.Enforced && o.Tier == api.TierGuard
		})
		s.awaitCommand([]string{"top", "-n", s.namespace, "--no-headers"}, "quiet  trainer  8Gi  7Gi  88 ")
		s.awaitUsage("of what it holds, 7GiB of 8Gi, used as the agent read it", func(l usage.Line) bool {
			return l.Used > 0 && 8*l.Used <= 7*l.Read && l.Read <= l.Held.Memory
		})
	})
	t.Run("what a pod without a slice holds is counted, and nobody knows what it uses", func(t *testing.T) {
		t.Parallel()
		s := withAgent(t)
		bare := tenant("trainer", "wait 10m")
		bare.Resources.Limits = corev1.ResourceList{install.SharedResource: resource.MustParse("1")}
		if p := s.create(plain("bare", bare)); p.Annotations[api.AnnotationPromise] != "" {
			t.Fatal("it has a slice")
		}
		s.awaitUsage("part of a device", func(l usage.Line) bool {
			return l.Held.Devices > 0 && l.Held.Memory > 0 && l.Pool != install.SharedResource && l.Used == 0 && l.Read == 0
		})
	})
}

// awaitUsage returns once a line of the namespace in today's count is as wanted. The webhook counts each minute.
func (s *stage) awaitUsage(what string, wanted func(usage.Line) bool) {
	s.Helper()
	var last []*usage.Day
	err := wait.PollUntilContextTimeout(s.Context(), time.Second, within, true, func(ctx context.Context) (bool, error) {
		now := time.Now()
		days, _, err := usage.Read(ctx, s.node.Client, api.SystemNamespace, now.Add(-within), now.Add(within))
		last = days
		return slices.ContainsFunc(days, func(d *usage.Day) bool {
			return slices.ContainsFunc(d.Lines, func(l usage.Line) bool { return l.Namespace == s.namespace && wanted(l) })
		}), err
	})
	if err != nil {
		for _, d := range last {
			s.Logf("%+v", *d)
		}
		s.Fatalf("%s is not counted: %v", what, err)
	}
}
