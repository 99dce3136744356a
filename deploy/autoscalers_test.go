package deploy_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/autoscalers"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// TestAutoscalerPages: the pod of a page, decided while there is no node, fits the node that the page describes to the autoscaler.
func TestAutoscalerPages(t *testing.T) {
	t.Parallel()
	for path, describe := range map[string]func(*testing.T, []string) *corev1.Node{
		"deploy/recipes/karpenter.md":          karpenterNode,
		"deploy/recipes/cluster-autoscaler.md": taggedNode,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			var all []string
			for _, p := range pages(t) {
				if p.Path == path {
					for _, b := range p.Blocks() {
						all = append(all, documents(t, b)...)
					}
				}
			}
			node, pod := describe(t, all), slicedPod(t, containing(t, all, "apiVersion: "+config.APIVersion), containing(t, all, "kind: Pod\n"))
			if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
				t.Errorf("affinity %+v, labels %v: %v", pod.Spec.Affinity, node.Labels, err)
			}
			if taint, found := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations,
				nil, false); found || len(node.Spec.Taints) == 0 {
				t.Errorf("taint %v of %v is not tolerated", taint, node.Spec.Taints)
			}
			requested := 0
			for name, want := range pod.Spec.Containers[0].Resources.Limits {
				if have := node.Status.Capacity[name]; strings.Contains(string(name), "/") {
					requested++
					if have.Cmp(want) < 0 {
						t.Errorf("the pod requests %s of %s, the node has %s", want.String(), name, have.String())
					}
				}
			}
			if requested == 0 {
				t.Error("the pod requests no GPU")
			}
		})
	}
}

// containing returns the one document that has a text.
func containing(t *testing.T, documents []string, text string) (found string) {
	t.Helper()
	for _, d := range documents {
		if strings.Contains(d, text) {
			if found != "" {
				t.Fatalf("two documents with %q", text)
			}
			found = d
		}
	}
	if found == "" {
		t.Fatalf("no document with %q", text)
	}
	return found
}

// slicedPod returns the pod as gpuslice makes it where no node is known.
func slicedPod(t *testing.T, policy, pod string) *corev1.Pod {
	t.Helper()
	parsed, problems := config.Parse("gpuslice-system/default", []byte(policy))
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	before := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(pod), before); err != nil {
		t.Fatal(err)
	}
	d := policies.Decide(policies.Input{Namespace: api.Namespace{Name: "team-a"}, Policy: parsed, Pod: before, Guard: scenarios.Guard(),
		Pools: pools.Source{}.Pools(parsed.Pools, nil), PoolsComplete: parsed.Pools.Complete})
	if d.Promise == nil {
		t.Fatalf("no slice: %s", scenarios.Told(d))
	}
	return podedit.Apply(d.Promise, before)
}

// karpenterNode is what Karpenter takes a new node of the page's NodePool for, with its NodeOverlay.
func karpenterNode(t *testing.T, documents []string) *corev1.Node {
	t.Helper()
	var pool struct {
		Spec struct {
			Template struct {
				Metadata struct{ Labels map[string]string }
				Spec     struct{ Taints []corev1.Taint }
			}
		}
	}
	var overlay struct {
		Spec struct{ Capacity corev1.ResourceList }
	}
	for text, into := range map[string]any{"kind: NodePool\n": &pool, "kind: NodeOverlay\n": &overlay} {
		if err := yaml.Unmarshal([]byte(containing(t, documents, text)), into); err != nil {
			t.Fatal(err)
		}
	}
	node := &corev1.Node{}
	node.Labels, node.Spec.Taints, node.Status.Capacity = pool.Spec.Template.Metadata.Labels,
		pool.Spec.Template.Spec.Taints, overlay.Spec.Capacity
	return node
}

// taggedNode is the node that Cluster Autoscaler builds from the page's tags.
func taggedNode(t *testing.T, documents []string) *corev1.Node {
	t.Helper()
	var tags map[string]string
	if err := yaml.Unmarshal([]byte(containing(t, documents, autoscalers.TagPrefix)), &tags); err != nil {
		t.Fatal(err)
	}
	node, err := autoscalers.TaggedNode(tags)
	if err != nil {
		t.Fatal(err)
	}
	return node
}
