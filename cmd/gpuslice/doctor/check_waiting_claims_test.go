package doctor

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies/api"
)

// TestWaiting reads the pods that wait, and claims where there is one.
func TestWaiting(t *testing.T) {
	t.Parallel()
	template, own := "gpuslice-4396mi", "own"
	pod := func(name, node, template string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, Labels: map[string]string{api.LabelTier: "guard"}},
			Spec: corev1.PodSpec{NodeName: node,
				ResourceClaims: []corev1.PodResourceClaim{{Name: "gpuslice", ResourceClaimTemplateName: &template}}}}
	}
	gated := pod("gated", "", template)
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "queue"}}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "c"}}
	for _, tt := range []struct {
		what          string
		slices        int
		pods          []*corev1.Pod
		waits, claims int
	}{
		{"a pod waits", 1, []*corev1.Pod{pod("waits", "", template), pod("runs", "n", template), pod("other", "", own)}, 1, 1},
		{"none waits", 1, []*corev1.Pod{pod("runs", "n", template)}, 0, 0},
		{"a queue holds the pod", 1, []*corev1.Pod{gated}, 0, 0},
		{"no driver publishes devices", 0, []*corev1.Pod{pod("waits", "", template)}, 0, 0},
	} {
		client := fake.NewClientset(claim)
		for _, p := range tt.pods {
			if err := client.Tracker().Add(p); err != nil {
				t.Fatal(err)
			}
		}
		g := gatherer{ctx: t.Context(), client: client, facts: &Facts{Slices: make([]*resourcev1.ResourceSlice, tt.slices)}}
		if err := g.waiting(); err != nil || len(g.facts.WaitingPods) != tt.waits || len(g.facts.Claims) != tt.claims {
			t.Errorf("%s: %v, %d pods, %d claims", tt.what, err, len(g.facts.WaitingPods), len(g.facts.Claims))
		}
	}
}
