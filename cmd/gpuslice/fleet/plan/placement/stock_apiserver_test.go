package placement

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/test/cluster"
)

// TestStockOnAPIServer compares the model with kube-scheduler on generated fleets: as many pods are bound, and each decision is one
// that the model takes from the same state.
func TestStockOnAPIServer(t *testing.T) {
	// The plugin would taint nodes without a kubelet as not ready.
	server := cluster.ForTest(t, cluster.Options{Scheduler: true, Flags: []string{"--disable-admission-plugins=TaintNodesByCondition"}})
	fleet := func(seed uint64, fewestNodes, pods int) (exact bool) {
		random := rand.New(rand.NewPCG(seed, 28))
		f := &trial{t: t, client: server.Client}
		f.generate(random, fewestNodes+random.IntN(fewestNodes), pods)
		placed := f.schedule(fmt.Sprintf("fleet-%d", seed))
		decisions := f.replay(placed)
		least, most := f.possible(random)
		model, actual := Stock(f.nodes, f.pods), bound(placed)
		t.Logf("fleet %d: %d nodes, %d pods, %d decisions: kube-scheduler bound %d, the model %d (%d to %d with ties at random); %d nodes differ",
			seed, len(f.nodes), len(f.pods), decisions, actual, bound(model), least, most, f.differences(placed, model))
		if actual < least || actual > most {
			t.Errorf("fleet %d: kube-scheduler bound %d pods, the model %d to %d", seed, actual, least, most)
		}
		return least == most
	}
	// The scheduler breaks ties at random. In 20 fleets that changes no number.
	seed := uint64(0)
	for exact := 0; exact < 20; seed++ {
		if fleet(seed, 4, 32) {
			exact++
		}
	}
	fleet(seed, 110, 200) // of so many nodes the scheduler scores a part
}

// trial is a fleet that exists on an API server too.
type trial struct {
	t      *testing.T
	client kubernetes.Interface
	nodes  []Node
	pods   []Pod
}

const (
	wholeGPU  = "nvidia.com/gpu"
	sharedGPU = "nvidia.com/gpu.shared"
	kindLabel = "kind"
)

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// generate makes nodes of two to four kinds and more pods than fit, of which some run already.
func (f *trial) generate(random *rand.Rand, nodes, pods int) {
	kinds := make([]Node, 2+random.IntN(3))
	for i := range kinds {
		cores := pick[int64](random, 8, 16, 32, 64, 96)
		kinds[i] = Node{Kind: i, CPU: cores*1000 - 110,
			Memory: cores*pick[int64](random, 4, 8)<<10 - 1357, Pods: pick[int64](random, 110, 110, 5)}
		switch gpus := pick[int64](random, 1, 2, 4, 8); (i + random.IntN(2)) % 3 {
		case 0:
			kinds[i].Extended = map[string]int64{wholeGPU: gpus}
		case 1:
			kinds[i].Extended = map[string]int64{sharedGPU: gpus * pick[int64](random, 2, 3, 4)}
		}
	}
	for range nodes {
		f.nodes = append(f.nodes, pick(random, kinds...))
	}
	for range pods {
		f.pods = append(f.pods, newPod(random, len(kinds)))
	}
	s := newStock(f.nodes, f.pods)
	for i := range f.pods[:pods/10] {
		at, requests := random.IntN(nodes), s.amounts(f.pods[i].Extended)
		if s.nodes[at].fits(&f.pods[i], requests) {
			s.nodes[at].take(&f.pods[i], requests)
			f.pods[i].Node = at + 1
		}
	}
}

func newPod(random *rand.Rand, kinds int) Pod {
	p := Pod{CPU: pick[int64](random, 0, 500, 1000, 4000, 7500), Memory: pick[int64](random, 0, 1<<10, 6<<10, 25<<10)}
	switch random.IntN(6) {
	case 0, 1:
		p.Extended = map[string]int64{sharedGPU: 1}
	case 2, 3:
		p.Extended = map[string]int64{wholeGPU: pick[int64](random, 1, 1, 1, 2, 4)}
	}
	if random.IntN(5) == 0 {
		p.Allowed = make([]bool, kinds)
		p.Allowed[random.IntN(kinds)] = true
		p.Allowed[random.IntN(kinds)] = true
	}
	return p
}

// schedule makes the fleet's objects, and returns where each pod is once the scheduler has decided about all. It removes them.
func (f *trial) schedule(name string) []int {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Minute)
	defer cancel()
	index := map[string]int{"": Waits}
	for i := range f.nodes {
		node := f.nodes[i].object(fmt.Sprintf("%s-%d", name, i))
		index[node.Name] = i
		if _, err := f.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			f.t.Fatal(err)
		}
	}
	f.awaitNodes(ctx, fmt.Sprintf("%s-%d", name, len(f.nodes)-1))
	for _, running := range []bool{true, false} {
		for i := range f.pods {
			if f.pods[i].Node > 0 != running {
				continue
			}
			pod := f.pods[i].object(strconv.Itoa(i))
			if running {
				pod.Spec.NodeName = fmt.Sprintf("%s-%d", name, f.pods[i].Node-1)
			}
			f.create(ctx, pod)
		}
	}
	placed := make([]int, len(f.pods))
	for _, pod := range f.decided(ctx) {
		i, err := strconv.Atoi(pod.Name)
		if err != nil {
			f.t.Fatal(err)
		}
		placed[i] = index[pod.Spec.NodeName]
	}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	if err := f.client.CoreV1().Pods("default").DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		f.t.Fatal(err)
	}
	if err := f.client.CoreV1().Nodes().DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		f.t.Fatal(err)
	}
	return placed
}

// awaitNodes returns once the scheduler knows the last node, and with it all that was made and removed before.
func (f *trial) awaitNodes(ctx context.Context, last string) {
	f.t.Helper()
	pod := (&Pod{}).object("probe")
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: last}
	f.create(ctx, pod)
	f.await(ctx, func(pods []corev1.Pod) bool { return pods[0].Spec.NodeName != "" })
	if err := f.client.CoreV1().Pods("default").Delete(ctx, "probe", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		f.t.Fatal(err)
	}
}

// decided returns all pods once each is bound or known to fit nowhere.
func (f *trial) decided(ctx context.Context) []corev1.Pod {
	f.t.Helper()
	return f.await(ctx, func(pods []corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			return pod.Spec.NodeName == "" && !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
			})
		})
	})
}

func (f *trial) await(ctx context.Context, reached func([]corev1.Pod) bool) (pods []corev1.Pod) {
	f.t.Helper()
	err := wait.PollUntilContextCancel(ctx, 25*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := f.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		pods = list.Items
		return reached(pods), nil
	})
	if err != nil {
		f.t.Fatalf("wait for the scheduler: %v", err)
	}
	return pods
}

func (f *trial) create(ctx context.Context, pod *corev1.Pod) {
	f.t.Helper()
	if _, err := f.client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// replay checks each decision of the scheduler from the state that those before it led to, and counts them. In a fleet of which the
// scheduler looks at a part, its threads decide at which: there a pod has a node exactly if it fits somewhere, and fits on its node.
func (f *trial) replay(placed []int) (decisions int) {
	s := newStock(f.nodes, f.pods)
	for i := range f.pods {
		if f.pods[i].Node > 0 {
			s.nodes[placed[i]].take(&f.pods[i], s.amounts(f.pods[i].Extended))
		}
	}
	for i := range f.pods {
		p, requests := &f.pods[i], s.amounts(f.pods[i].Extended)
		if p.Node > 0 {
			continue
		}
		decisions++
		best := s.find(p, requests)
		if placed[i] < 0 {
			if len(best) > 0 {
				f.t.Errorf("pod %d (%+v) waits, and the model places it on one of %v", i, *p, best)
			}
			continue
		}
		if !slices.Contains(best, placed[i]) && (s.wanted() == len(s.nodes) || !s.nodes[placed[i]].fits(p, requests)) {
			f.t.Errorf("pod %d (%+v) is on node %d, and the model places it on one of %v", i, *p, placed[i], best)
		}
		s.nodes[placed[i]].take(p, requests)
	}
	return decisions
}

// possible returns the least and the most pods that the model binds if it breaks ties at random, as the scheduler does.
func (f *trial) possible(random *rand.Rand) (least, most int) {
	const draws = 200
	for draw := range draws {
		s, n := newStock(f.nodes, f.pods), 0
		for _, running := range []bool{true, false} {
			for i := range f.pods {
				p, requests := &f.pods[i], s.amounts(f.pods[i].Extended)
				if p.Node > 0 != running {
					continue
				}
				at := p.Node - 1
				if best := s.find(p, requests); !running && len(best) > 0 {
					at = pick(random, best...)
				}
				if at >= 0 {
					s.nodes[at].take(p, requests)
					n++
				}
			}
		}
		if least, most = min(least, n), max(most, n); draw == 0 {
			least = n
		}
	}
	return least, most
}

// differences counts the nodes on which two placements have unlike numbers of pods.
func (f *trial) differences(a, b []int) (n int) {
	more := make([]int, len(f.nodes))
	for i := range f.pods {
		if a[i] >= 0 {
			more[a[i]]++
		}
		if b[i] >= 0 {
			more[b[i]]--
		}
	}
	for _, m := range more {
		if m != 0 {
			n++
		}
	}
	return n
}

func bound(placed []int) (n int) {
	for _, at := range placed {
		if at >= 0 {
			n++
		}
	}
	return n
}

func (n *Node) object(name string) *corev1.Node {
	offered := resources(n.CPU, n.Memory, n.Extended)
	offered[corev1.ResourcePods] = *resource.NewQuantity(n.Pods, resource.DecimalSI)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, kindLabel: strconv.Itoa(n.Kind)}},
		Status: corev1.NodeStatus{Capacity: offered, Allocatable: offered,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func (p *Pod) object(name string) *corev1.Pod {
	requests := resources(p.CPU, p.Memory, p.Extended)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "example.test/main",
		Resources: corev1.ResourceRequirements{Requests: requests, Limits: resources(0, 0, p.Extended)}}}}}
	if p.Allowed == nil {
		return pod
	}
	in := corev1.NodeSelectorRequirement{Key: kindLabel, Operator: corev1.NodeSelectorOpIn}
	for kind, allowed := range p.Allowed {
		if allowed {
			in.Values = append(in.Values, strconv.Itoa(kind))
		}
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{in}}}}}}
	return pod
}

// resources leaves out what is zero.
func resources(cpu, memory int64, extended map[string]int64) corev1.ResourceList {
	list := corev1.ResourceList{}
	if cpu > 0 {
		list[corev1.ResourceCPU] = *resource.NewMilliQuantity(cpu, resource.DecimalSI)
	}
	if memory > 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(memory<<20, resource.BinarySI)
	}
	for name, count := range extended {
		list[corev1.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return list
}
