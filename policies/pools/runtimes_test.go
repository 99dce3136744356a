package pools

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/config"
)

// withHandlers is a node whose container runtime has handlers beside the default one.
func withHandlers(node *corev1.Node, names ...string) *corev1.Node {
	node.Status.RuntimeHandlers = []corev1.NodeRuntimeHandler{{Name: ""}}
	for _, name := range names {
		node.Status.RuntimeHandlers = append(node.Status.RuntimeHandlers, corev1.NodeRuntimeHandler{Name: name})
	}
	return node
}

func TestHandlersAreThoseOfEveryNode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		nodes []*corev1.Node
		want  []string
	}{
		{"all report the same",
			[]*corev1.Node{withHandlers(shared("a", "4"), "runc", "nvidia"), withHandlers(shared("b", "4"), "nvidia", "runc")},
			[]string{"nvidia", "runc"}},
		{"one has less", []*corev1.Node{withHandlers(shared("a", "4"), "runc", "nvidia"), withHandlers(shared("b", "4"), "runc")},
			[]string{"runc"}},
		{"one does not tell", []*corev1.Node{withHandlers(shared("a", "4"), "runc", "nvidia"), shared("b", "4")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := FromNodes(c.nodes, config.PoolsSpec{}, nil)
			if len(all) != 1 || !slices.Equal(all[0].Handlers, c.want) {
				t.Errorf("want one pool with %q, got %+v", c.want, all)
			}
		})
	}
}

func TestGKEPlugin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		labels map[string]string
		want   bool
	}{
		{"a node of GKE", map[string]string{labelGKEAccelerator: "nvidia-l4"}, true},
		{"a node of GKE with the GPU Operator", map[string]string{labelGKEAccelerator: "nvidia-l4", labelGKENoPlugin: "true"}, false},
		{"another node", map[string]string{}, false},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: c.labels}}
		for from, p := range map[string]*Pool{"nodes": {Nodes: nodeKinds([]*corev1.Node{node})}, "a declaration": {Labels: c.labels}} {
			if got := p.GKEPlugin(); got != c.want {
				t.Errorf("%s, by %s: %t", c.name, from, got)
			}
		}
	}
}
