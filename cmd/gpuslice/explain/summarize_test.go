package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
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
	if d.Outcome != policies.Mutated {
		t.Fatalf("%s: %s", d.Outcome, d.Message())
	}
	return podedit.Apply(d.Promise, pod)
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

// recorded is an Event about the pod train.
func recorded(from, reason, text string) corev1.Event {
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "train", UID: "1", FieldPath: "spec.initContainers{gpuslice-guard}"},
		Source:         corev1.EventSource{Component: from}, Reason: reason, Message: text, Type: corev1.EventTypeWarning,
		LastTimestamp: metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
}

func TestReasons(t *testing.T) {
	sentence := "gpuslice terminated python (pid 7, 6.0Gi) in trainer: 6.0Gi of 4.0Gi"
	for _, c := range []struct {
		name  string
		facts func(*corev1.Pod, *facts)
		state state
		says  []string // parts of the reasons, in order
	}{
		{"no node has room", func(p *corev1.Pod, _ *facts) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
				Message: "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.shared."}}
		}, pending, []string{"scheduler: 0/2 nodes"}},
		{"a scheduling gate", func(p *corev1.Pod, _ *facts) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
		}, pending, []string{"scheduling gate kueue.x-k8s.io/admission"}},
		{"an image that cannot be pulled", func(p *corev1.Pod, _ *facts) {
			p.Spec.NodeName = "n1"
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "trainer",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
		}, pending, []string{"trainer is waiting (ImagePullBackOff): no such image"}},
		{"a container that cannot start, shown once", func(p *corev1.Pod, _ *facts) {
			p.Spec.NodeName = "n1"
			broken := ended("trainer", 128, "StartError", "failed to create task: no such file")
			broken.State.Waiting = &corev1.ContainerStateWaiting{Reason: "RunContainerError", Message: "failed to create task: no such file"}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{broken}
		}, pending, []string{"trainer is waiting (RunContainerError): failed to create task: no such file"}},
		{"a device that does not match the plan", func(p *corev1.Pod, _ *facts) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{
				ended("gpuslice-check", 1, "Error", "the device has 15 GiB, and 22 GiB were planned on"),
			}
		}, pending, []string{"the node does not match the plan, and was restarted 1 times: the device has 15 GiB"}},
		{"the guard ended it", func(p *corev1.Pod, f *facts) {
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{ended("trainer", 137, "Error", sentence)}
			f.events = []corev1.Event{recorded("kubelet", "Unhealthy", "Liveness probe failed: "+sentence)}
			f.guardLog = guardTerminations([]byte("no JSON\n{\"message\":\"trainer uses 4Gi\"}\n{\"message\":\"" + sentence + "\"}\n"))
		}, running, []string{"trainer exited with code 137, and was restarted 1 times: " + sentence, sentence}},
		{"the host's memory, not the GPU's", func(p *corev1.Pod, _ *facts) {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses = []corev1.ContainerStatus{ended("trainer", 137, "OOMKilled", "")}
		}, terminated, []string{"trainer exited with code 137 (OOMKilled: over a limit of host memory, not of GPU memory)"}},
		{"the kubelet found no device", func(p *corev1.Pod, _ *facts) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "UnexpectedAdmissionError", "no healthy devices"
		}, terminated, []string{"UnexpectedAdmissionError: no healthy devices"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := sliced(t, "train", sharedNodes(t))
			f := &facts{subject: subject{"pod", "team-a", "train"}, pod: p, found: true}
			c.facts(p, f)
			l := summarize(f)
			if l.State != c.state || len(l.Reasons) != len(c.says) {
				t.Fatalf("state %s, because %q", l.State, l.Reasons)
			}
			for i, text := range c.says {
				if !strings.Contains(l.Reasons[i], text) {
					t.Errorf("because %q, want %q", l.Reasons[i], text)
				}
			}
			if l.Given == nil || l.Given.Strategy != "time-slicing" || l.Requested.Containers[0].Size.Memory.Human() != "4Gi" {
				t.Errorf("asked %+v, given %+v", l.Requested, l.Given)
			}
		})
	}
}

func TestCandidateNodesOfAgents(t *testing.T) {
	t.Parallel()
	nodes, err := scenarios.Nodes("l4-agents") // the second has one that is started again
	if err != nil {
		t.Fatal(err)
	}
	f := &facts{subject: subject{"pod", "team-a", "train"},
		pod: sliced(t, "train", nodes), found: true, othersRead: true, nodes: []corev1.Node{*nodes[0], *nodes[1]}}
	var reasons []string
	for _, n := range summarize(f).Nodes {
		reasons = append(reasons, n.Reason)
	}
	if diff := cmp.Diff([]string{"", "no agent enforces there: see the node's pod of the DaemonSet gpuslice-agent"}, reasons); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCandidateNodes(t *testing.T) {
	t.Parallel()
	nodes := sharedNodes(t)
	p := sliced(t, "train", nodes)
	f := &facts{subject: subject{"pod", "team-a", "train"}, pod: p, found: true, othersRead: true}
	full, cordoned, tainted, other := *nodes[0].DeepCopy(), *nodes[0].DeepCopy(), *nodes[0].DeepCopy(), *nodes[0].DeepCopy()
	full.Name, cordoned.Name, tainted.Name, other.Name = "full", "cordoned", "tainted", "other"
	cordoned.Spec.Unschedulable = true
	tainted.Spec.Taints = []corev1.Taint{{Key: "team", Value: "b", Effect: corev1.TaintEffectNoSchedule}}
	other.Labels = map[string]string{"nvidia.com/gpu.memory": "1"}
	f.nodes = []corev1.Node{full, cordoned, tainted, other}
	offered := full.Status.Allocatable["nvidia.com/gpu.shared"]
	for range offered.Value() {
		holder := sliced(t, "holder", nodes)
		holder.Spec.NodeName = "full"
		f.others = append(f.others, *holder)
	}
	l := summarize(f)
	n := offered.Value()
	want := []node{
		{"full", "nvidia.com/gpu.shared", n, 0, ""}, {"cordoned", "nvidia.com/gpu.shared", n, n, "the node is cordoned"},
		{"tainted", "nvidia.com/gpu.shared", n, n, "the pod does not tolerate team=b:NoSchedule"},
		{"other", "nvidia.com/gpu.shared", n, n, "the pod's node selector or affinity excludes it"},
	}
	if diff := cmp.Diff(want, l.Nodes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(l.Notes) != 1 || !strings.Contains(l.Notes[0], "stays pending until another pod ends") {
		t.Errorf("notes %q", l.Notes)
	}
	f.nodes = []corev1.Node{cordoned, tainted, other}
	if l := summarize(f); len(l.Notes) != 1 || !strings.Contains(l.Notes[0], "can take the pod, for the reasons above") {
		t.Errorf("no node can take the pod, whoever ends: notes %q", l.Notes)
	}
	f.nodes, f.othersRead = []corev1.Node{full, cordoned, tainted, other}, false
	if l := summarize(f); l.Nodes[0].Free != unknownFree || len(l.Notes) != 0 {
		t.Errorf("what is not seen is known: %+v, %q", l.Nodes[0], l.Notes)
	}
}

func TestSummarizeDeniedWorkload(t *testing.T) {
	t.Parallel()
	denial := recorded("replicaset-controller", "FailedCreate",
		`Error creating: admission webhook "pods.gpuslice.dev" denied the request: 40Gi does not fit`)
	f := &facts{subject: subject{"deployment", "team-a", "train"}, found: true, events: []corev1.Event{denial, denial}}
	l := summarize(f)
	if !l.denied || len(l.Reasons) != 1 || !strings.HasSuffix(l.Reasons[0], "40Gi does not fit") {
		t.Errorf("denied %t, because %q", l.denied, l.Reasons)
	}
	pod := sliced(t, "train-x", sharedNodes(t))
	for _, c := range []struct {
		name   string
		age    time.Duration // of the pod at the denial
		denied bool
	}{
		{"one of its pods lives, and the others are denied", time.Minute, true},
		{"it was denied once, and its pod was created since", -time.Minute, false},
	} {
		pod.CreationTimestamp = metav1.NewTime(denial.LastTimestamp.Add(-c.age))
		f.pods = []*corev1.Pod{pod}
		l = summarize(f)
		if diff := cmp.Diff([]podRow{{"train-x", pending, "4Gi", "guard planned"}}, l.Pods); diff != "" ||
			l.denied != c.denied || (len(l.Reasons) > 0) != c.denied {
			t.Errorf("%s: denied %t, because %q (-want +got):\n%s", c.name, l.denied, l.Reasons, diff)
		}
	}
}

// TestDenialsOfEarlierTemplates: an Event stays for an hour, and the template may have been corrected since.
func TestDenialsOfEarlierTemplates(t *testing.T) {
	t.Parallel()
	denial := recorded("replicaset-controller", "FailedCreate",
		`Error creating: admission webhook "pods.gpuslice.dev" denied the request: 40Gi does not fit`)
	at := denial.LastTimestamp.Time
	replicaSet := func(uid types.UID, revision string) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: uid, Annotations: map[string]string{revisionAnnotation: revision}}}
	}
	owners := map[types.UID]bool{"1": true, "2": true}
	for _, c := range []struct {
		name     string
		outdated map[types.UID]bool
		changed  time.Time
		denied   bool
	}{
		{"of the current ReplicaSet", outdated([]*appsv1.ReplicaSet{replicaSet("1", "10"), replicaSet("2", "9")}, owners), time.Time{}, true},
		{"of an earlier one", outdated([]*appsv1.ReplicaSet{replicaSet("1", "9"), replicaSet("2", "10")}, owners), time.Time{}, false},
		{"a ReplicaSet of somebody else is newer",
			outdated([]*appsv1.ReplicaSet{replicaSet("1", "9"), replicaSet("3", "10")}, owners), time.Time{}, true},
		{"ReplicaSets that cannot be distinguished",
			outdated([]*appsv1.ReplicaSet{replicaSet("1", ""), replicaSet("2", "x")}, owners), time.Time{}, true},
		{"after the last change", nil, at.Add(-time.Minute), true},
		{"in the second of the last change", nil, at, true},
		{"before the last change", nil, at.Add(time.Minute), false},
	} {
		f := &facts{subject: subject{"deployment", "team-a", "train"},
			found: true, events: []corev1.Event{denial}, outdated: c.outdated, changed: c.changed}
		if l := summarize(f); l.denied != c.denied || (len(l.Reasons) > 0) != c.denied || len(l.Events) != 1 {
			t.Errorf("%s: denied %t, because %q", c.name, l.denied, l.Reasons)
		}
	}
	written, status := metav1.NewTime(at), metav1.NewTime(at.Add(time.Hour))
	object := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Time: &written}, {Time: &status, Subresource: "status"}, {}}}
	if got := changedAt(object); !got.Equal(at) {
		t.Errorf("changed at %s, want %s", got, at)
	}
}

func TestSummarizeMissing(t *testing.T) {
	t.Parallel()
	if l := summarize(&facts{subject: subject{"pod", "team-a", "gone"}}); l.State != missing ||
		!strings.Contains(l.Notes[0], "gpuslice explain deployment/NAME -n team-a") {
		t.Errorf("%+v", l)
	}
	if l := summarize(&facts{subject: subject{"job", "team-a", "gone"}}); l.State != missing {
		t.Errorf("%+v", l)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: "team-a"}}
	if l := summarize(&facts{subject: subject{Kind: "pod"}, pod: p, found: true}); l.Given != nil ||
		!strings.Contains(l.Notes[0], "wrote nothing on it") {
		t.Errorf("%+v", l)
	}
	p.Annotations = map[string]string{api.AnnotationPromise: "{"}
	if l := summarize(&facts{subject: subject{Kind: "pod"}, pod: p, found: true}); l.Given != nil ||
		!strings.Contains(l.Notes[0], "cannot be read") {
		t.Errorf("%+v", l)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]string{
		"train": "pod train", "pod/train": "pod train", "po/train": "pod train",
		"Deployment/train": "deployment train", "deploy/train": "deployment train",
		"statefulsets/train": "statefulset train", "sts/train": "statefulset train",
		"ds/train": "daemonset train", "rs/train": "replicaset train",
		"jobs/train": "job train", "cj/train": "cronjob train", "service/train": "", "pod/": "", "": "",
	} {
		kind, name, err := parse(argument)
		if got := strings.TrimSpace(kind + " " + name); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", argument, got, err)
		}
	}
}
