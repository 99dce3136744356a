package pools

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/gpuslice/gpuslice/policies/api"
)

func labelled(name string, pairs ...string) *corev1.Node {
	labels := map[string]string{corev1.LabelHostname: name}
	for i := 0; i < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func requires(terms ...corev1.NodeSelectorTerm) corev1.PodSpec {
	return corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}}
}

func expression(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

func fieldName(op corev1.NodeSelectorOperator, name string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: op, Values: []string{name}}}}
}

func TestReach(t *testing.T) {
	t.Run("a pod reaches the pools that its own constraints leave", func(t *testing.T) {
		t.Parallel()
		plain := Pool{Resource: api.ResourceGPU,
			Nodes: nodeKinds([]*corev1.Node{labelled("n1", "zone", "a", "cores", "32"), labelled("n2", "zone", "a", "cores", "32")})}
		tainted := Pool{Resource: api.ResourceGPU, Nodes: []nodeKind{{Taints: []corev1.Taint{
			{Key: api.ResourceGPU, Value: "present", Effect: corev1.TaintEffectNoSchedule},
			{Key: "team", Value: "ml", Effect: corev1.TaintEffectNoExecute}}}}}
		toCome := Pool{Resource: api.ResourceGPU, Labels: map[string]string{"zone": "a"}, ScalesFromZero: true}
		grows := Pool{Resource: api.ResourceGPU, Labels: map[string]string{"zone": "a"}, ScalesFromZero: true, Nodes: plain.Nodes}
		tolerant := func(t corev1.Toleration) corev1.PodSpec { return corev1.PodSpec{Tolerations: []corev1.Toleration{t}} }
		for _, c := range []struct {
			name  string
			pool  Pool
			pod   corev1.PodSpec
			extra []corev1.Toleration
			why   string // empty: it reaches the pool
		}{
			{name: "a pod without constraints", pool: plain},
			{name: "a nodeSelector that the nodes match", pool: plain, pod: corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}},
			{name: "a nodeSelector of another value", pool: plain, pod: corev1.PodSpec{NodeSelector: map[string]string{"zone": "b"}},
				why: "nodeSelector matches none"},
			{name: "a nodeSelector of a key that no node has", pool: plain, pod: corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}},
				why: "nodeSelector matches none"},
			{name: "the hostname of the second of two equal nodes", pool: plain,
				pod: corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelHostname: "n2"}}},
			{name: "the hostname of a node elsewhere", pool: plain, pod: corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelHostname: "n3"}},
				why: "nodeSelector matches none"},
			{name: "any of two terms is enough", pool: plain, pod: requires(expression("zone", "In", "b"), expression("zone", "In", "a"))},
			{name: "affinity to another zone", pool: plain,
				pod: requires(expression("zone", "In", "b")), why: "required node affinity matches none"},
			{name: "affinity with no term matches nothing", pool: plain, pod: requires(), why: "required node affinity"},
			{name: "affinity with an empty term matches nothing", pool: plain,
				pod: requires(corev1.NodeSelectorTerm{}), why: "required node affinity"},
			{name: "a number above a bound", pool: plain, pod: requires(expression("cores", "Gt", "16"))},
			{name: "a number not above a bound", pool: plain, pod: requires(expression("cores", "Gt", "32")), why: "required node affinity"},
			{name: "a word is no number", pool: plain, pod: requires(expression("zone", "Lt", "5")), why: "required node affinity"},
			{name: "by field, the name of one of the nodes", pool: plain, pod: requires(fieldName("In", "n1"))},
			{name: "by field, not one of the nodes, so the other", pool: plain, pod: requires(fieldName("NotIn", "n1"))},
			{name: "by field, a node elsewhere", pool: plain, pod: requires(fieldName("In", "n9")), why: "required node affinity"},
			{name: "a date that discovery writes is not known", pool: plain, pod: requires(expression("nvidia.com/gfd.timestamp", "Exists"))},
			{name: "a taint of the team", pool: tainted, why: `taint "team=ml:NoExecute" is not tolerated`},
			{name: "a toleration of the pod", pool: tainted, pod: tolerant(corev1.Toleration{Key: "team", Value: "ml"})},
			{name: "a toleration of another value", pool: tainted, pod: tolerant(corev1.Toleration{Key: "team", Value: "web"}), why: "team=ml"},
			{name: "a toleration of another effect", pool: tainted,
				pod: tolerant(corev1.Toleration{Key: "team", Operator: "Exists", Effect: "NoSchedule"}), why: "team=ml"},
			{name: "a toleration of everything", pool: tainted, pod: tolerant(corev1.Toleration{Operator: "Exists"})},
			{name: "a toleration of policy's", pool: tainted, extra: []corev1.Toleration{{Key: "team", Operator: "Exists"}}},
			{name: "nodes to come, a key nobody declared", pool: toCome, pod: corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}},
			{name: "nodes to come, another value of a declared key", pool: toCome, pod: corev1.PodSpec{NodeSelector: map[string]string{"zone": "b"}},
				why: "nodeSelector matches none"},
			{name: "nodes to come, a declared key that must not be", pool: toCome,
				pod: requires(expression("zone", "DoesNotExist")), why: "required node affinity"},
			{name: "a pool with nodes that may get others", pool: grows, pod: corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				ok, why := c.pool.Reach(&corev1.Pod{Spec: c.pod}, c.extra)
				if ok != (c.why == "") || !strings.Contains(why, c.why) {
					t.Errorf("got %v, %q; want the reason %q", ok, why, c.why)
				}
			})
		}
	})
	t.Run("a pod without constraints allocates little", func(t *testing.T) {
		var nodes []*corev1.Node
		for i := range 5000 {
			nodes = append(nodes, labelled(fmt.Sprintf("n%d", i), "zone", fmt.Sprint(i%3)))
		}
		pool := Pool{Resource: api.ResourceGPU, Nodes: nodeKinds(nodes)}
		if len(pool.Nodes) != 3 {
			t.Errorf("5000 nodes of three kinds gave %d", len(pool.Nodes))
		}
		pod := &corev1.Pod{}
		if n := testing.AllocsPerRun(100, func() { pool.Reach(pod, nil) }); n > 1 {
			t.Errorf("%v allocations", n)
		}
	})
	t.Run("a hostile affinity costs a bounded time", func(t *testing.T) {
		t.Parallel()
		var nodes []*corev1.Node
		for i := range 2000 {
			nodes = append(nodes, labelled(fmt.Sprintf("n%d", i), "id", fmt.Sprint(i)))
		}
		terms := make([]corev1.NodeSelectorTerm, 10_000)
		for i := range terms {
			terms[i] = expression("id", "In", "none")
		}
		c := constraintsOf(&corev1.Pod{Spec: requires(terms...)})
		pool := Pool{Nodes: nodeKinds(nodes)}
		for i := range pool.Nodes {
			c.stageOf(&pool.Nodes[i], false, "", nil)
		}
		if spent := maxTermChecks - c.patient; spent > maxTermChecks+4*len(pool.Nodes) {
			t.Errorf("%d checks", spent)
		}
	})
}

// TestReachOfScheduler compares with the scheduler's own matching, on random nodes and pods.
func TestReachOfScheduler(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	reached := 0
	for range 20_000 {
		var nodes []*corev1.Node
		for i := range 1 + r.IntN(4) {
			n := labelled(fmt.Sprintf("n%d", i))
			for _, key := range []string{"a", "b"} {
				if r.IntN(3) > 0 {
					n.Labels[key] = pick("1", "2", "x")
				}
			}
			nodes = append(nodes, n)
		}
		pod := &corev1.Pod{}
		if r.IntN(2) == 0 {
			pod.Spec = requires(randomTerms(r, pick)...)
		}
		if r.IntN(3) == 0 {
			pod.Spec.NodeSelector = map[string]string{pick("a", "b", corev1.LabelHostname): pick("1", "2", "n0", "n1")}
		}
		want := false
		for _, n := range nodes {
			match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n)
			want = want || err == nil && match
		}
		pool := Pool{Nodes: nodeKinds(nodes)}
		got, why := pool.Reach(pod, nil)
		if got != want {
			t.Fatalf("the scheduler says %v, reach %v (%s)\npod %+v\nnodes %+v", want, got, why, pod.Spec, pool.Nodes)
		}
		if got {
			reached++
		}
	}
	if reached < 2000 || reached > 18_000 {
		t.Errorf("%d of 20,000 reached a node: the samples tell little", reached)
	}
}

func randomTerms(r *rand.Rand, pick func(...string) string) []corev1.NodeSelectorTerm {
	var terms []corev1.NodeSelectorTerm
	for range r.IntN(3) {
		var term corev1.NodeSelectorTerm
		for range r.IntN(3) {
			req := corev1.NodeSelectorRequirement{Key: pick("a", "b", corev1.LabelHostname),
				Operator: corev1.NodeSelectorOperator(pick("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))}
			switch req.Operator {
			case "In", "NotIn":
				req.Values = []string{pick("1", "2", "n0"), pick("x", "n1")}
			case "Gt", "Lt":
				req.Values = []string{pick("0", "1", "2")}
			}
			term.MatchExpressions = append(term.MatchExpressions, req)
		}
		if r.IntN(4) == 0 {
			term.MatchFields = []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOperator(pick("In", "NotIn")), Values: []string{pick("n0", "n1", "n7")}},
			}
		}
		terms = append(terms, term)
	}
	return terms
}
