package life

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// sliced is a pod that came out in a slice on the nodes.
func sliced(t *testing.T, name string, nodes []*corev1.Node) *corev1.Pod {
	t.Helper()
	policy, problems := config.Parse("policy", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: "1", Labels: map[string]string{api.LabelMemory: "4Gi"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "trainer", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	d := policies.Decide(policies.Input{
		Pod: pod, Namespace: api.Namespace{Name: "team-a"}, Policy: policy, Pools: pools.FromNodes(nodes, config.PoolsSpec{}, nil),
		Guard: &config.GuardSettings{Image: "guard", CPU: "20m", Memory: "64Mi"},
	})
	if d.Outcome != policies.Rewritten {
		t.Fatalf("%s: %s", d.Outcome, d.Message())
	}
	return promise.Apply(pod, d.Promise)
}

func sharedNodes(t *testing.T) []*corev1.Node {
	t.Helper()
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed")
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

// ended is how a container ended.
func ended(name string, code int32, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, RestartCount: 1, LastTerminationState: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message},
	}}
}

// said is an Event about the pod train.
func said(from, reason, text string) corev1.Event {
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "train", UID: "1", FieldPath: "spec.initContainers{gpuslice-guard}"},
		Source:         corev1.EventSource{Component: from}, Reason: reason, Message: text, Type: corev1.EventTypeWarning,
		LastTimestamp: metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
}

func TestWhyAPodWaitsOrEnded(t *testing.T) {
	sentence := "gpuslice terminated python (pid 7, 6.0Gi) in trainer: 6.0Gi of 4.0Gi"
	for _, c := range []struct {
		name  string
		facts func(*corev1.Pod, *Facts)
		state State
		says  []string // parts of the reasons, in order
	}{
		{"no node has room", func(p *corev1.Pod, _ *Facts) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.shared."}}
		}, Waiting, []string{"the scheduler says: 0/2 nodes"}},
		{"a scheduling gate", func(p *corev1.Pod, _ *Facts) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
		}, Waiting, []string{"scheduling gate kueue.x-k8s.io/admission"}},
		{"an image that cannot be pulled", func(p *corev1.Pod, _ *Facts) {
			p.Spec.NodeName = "n1"
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "trainer", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
		}, Waiting, []string{"trainer waits (ImagePullBackOff): no such image"}},
		{"a device that is not what was planned on", func(p *corev1.Pod, _ *Facts) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("gpuslice-check", 1, "Error", "the device has 15 GiB, and 22 GiB were planned on")}
		}, Waiting, []string{"the node is not what was planned on, and was started again 1 times: the device has 15 GiB"}},
		{"the guard ended it", func(p *corev1.Pod, f *Facts) {
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{ended("trainer", 137, "Error", sentence)}
			f.Events = []corev1.Event{said("kubelet", "Unhealthy", "Liveness probe failed: "+sentence)}
			f.GuardSaid = endings([]byte("no JSON\n{\"message\":\"trainer uses 4Gi\"}\n{\"message\":\"" + sentence + "\"}\n"))
		}, Running, []string{"trainer ended with exit code 137, and was started again 1 times: " + sentence, sentence}},
		{"the host's memory, not the GPU's", func(p *corev1.Pod, _ *Facts) {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses = []corev1.ContainerStatus{ended("trainer", 137, "OOMKilled", "")}
		}, Ended, []string{"trainer ended with exit code 137 (OOMKilled: past its memory on the host, which is not the GPU's)"}},
		{"the kubelet found no device", func(p *corev1.Pod, _ *Facts) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "UnexpectedAdmissionError", "no healthy devices"
		}, Ended, []string{"UnexpectedAdmissionError: no healthy devices"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := sliced(t, "train", sharedNodes(t))
			f := &Facts{Kind: "pod", Namespace: "team-a", Name: "train", Pod: p, Found: true}
			c.facts(p, f)
			l := Tell(f)
			if l.State != c.state || len(l.Why) != len(c.says) {
				t.Fatalf("state %s, because %q", l.State, l.Why)
			}
			for i, text := range c.says {
				if !strings.Contains(l.Why[i], text) {
					t.Errorf("because %q, want %q", l.Why[i], text)
				}
			}
			if l.Given == nil || l.Given.Strategy != "time-slicing" || l.Asked.Containers[0].Size.Memory.Human() != "4Gi" {
				t.Errorf("asked %+v, given %+v", l.Asked, l.Given)
			}
		})
	}
}

func TestRoomOnNodesIsCounted(t *testing.T) {
	t.Parallel()
	nodes := sharedNodes(t)
	p := sliced(t, "train", nodes)
	f := &Facts{Kind: "pod", Namespace: "team-a", Name: "train", Pod: p, Found: true, OthersSeen: true}
	full, cordoned, tainted, other := *nodes[0].DeepCopy(), *nodes[0].DeepCopy(), *nodes[0].DeepCopy(), *nodes[0].DeepCopy()
	full.Name, cordoned.Name, tainted.Name, other.Name = "full", "cordoned", "tainted", "other"
	cordoned.Spec.Unschedulable = true
	tainted.Spec.Taints = []corev1.Taint{{Key: "team", Value: "b", Effect: corev1.TaintEffectNoSchedule}}
	other.Labels = map[string]string{"nvidia.com/gpu.memory": "1"}
	f.Nodes = []corev1.Node{full, cordoned, tainted, other}
	offered := full.Status.Allocatable[api.ResourceGPUShared]
	for range offered.Value() {
		holder := sliced(t, "holder", nodes)
		holder.Spec.NodeName = "full"
		f.Others = append(f.Others, *holder)
	}
	l := Tell(f)
	n := offered.Value()
	want := []Node{
		{"full", api.ResourceGPUShared, n, 0, ""}, {"cordoned", api.ResourceGPUShared, n, n, "it is cordoned"},
		{"tainted", api.ResourceGPUShared, n, n, "the pod does not tolerate team=b:NoSchedule"},
		{"other", api.ResourceGPUShared, n, n, "the pod's node selector or affinity leaves it out"},
	}
	if diff := cmp.Diff(want, l.Nodes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(l.Notes) != 1 || !strings.Contains(l.Notes[0], "waits until another pod ends") {
		t.Errorf("notes %q", l.Notes)
	}
	f.OthersSeen = false
	if l := Tell(f); l.Nodes[0].Free != unknownFree || len(l.Notes) != 0 {
		t.Errorf("what is not seen is known: %+v, %q", l.Nodes[0], l.Notes)
	}
}

func TestARefusedWorkloadSaysWhatItWasAnswered(t *testing.T) {
	t.Parallel()
	refusal := said("replicaset-controller", "FailedCreate", `Error creating: admission webhook "pods.gpuslice.dev" denied the request: 40Gi does not fit`)
	f := &Facts{Kind: "deployment", Namespace: "team-a", Name: "train", Found: true, Events: []corev1.Event{refusal, refusal}}
	l := Tell(f)
	if !l.Refused() || len(l.Why) != 1 || !strings.HasSuffix(l.Why[0], "40Gi does not fit") {
		t.Errorf("refused %t, because %q", l.Refused(), l.Why)
	}
	f.Pods = []corev1.Pod{*sliced(t, "train-x", sharedNodes(t))}
	l = Tell(f)
	if diff := cmp.Diff([]Short{{"train-x", Waiting, "4Gi", "guard planned"}}, l.Pods); diff != "" || l.Refused() {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	t.Parallel()
	if l := Tell(&Facts{Kind: "pod", Namespace: "team-a", Name: "gone"}); l.State != Missing || !strings.Contains(l.Notes[0], "gpuslice explain deployment/NAME -n team-a") {
		t.Errorf("%+v", l)
	}
	if l := Tell(&Facts{Kind: "job", Namespace: "team-a", Name: "gone"}); l.State != Missing {
		t.Errorf("%+v", l)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: "team-a"}}
	if l := Tell(&Facts{Kind: "pod", Pod: p, Found: true}); l.Given != nil || !strings.Contains(l.Notes[0], "wrote nothing on it") {
		t.Errorf("%+v", l)
	}
	p.Annotations = map[string]string{api.AnnotationPromise: "{"}
	if l := Tell(&Facts{Kind: "pod", Pod: p, Found: true}); l.Given != nil || !strings.Contains(l.Notes[0], "cannot be read") {
		t.Errorf("%+v", l)
	}
}

func TestNamesAreReadAsKubectlReadsThem(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"train": "pod train", "pod/train": "pod train", "po/train": "pod train", "Deployment/train": "deployment train", "deploy/train": "deployment train",
		"statefulsets/train": "statefulset train", "sts/train": "statefulset train", "ds/train": "daemonset train", "rs/train": "replicaset train",
		"jobs/train": "job train", "cj/train": "cronjob train", "service/train": "", "pod/": "", "": "",
	} {
		kind, name, err := parse(target)
		if got := strings.TrimSpace(kind + " " + name); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", target, got, err)
		}
	}
}
