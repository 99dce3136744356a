package resign

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// keysOf are keys made of one byte.
func keysOf(b string) promise.Keys {
	return promise.NewKeys(bytes.Repeat([]byte(b), 32))
}

// sliced is a pod with a slice that keys signed, and what a decision about it rests on.
func sliced(t *testing.T, keys promise.Keys) (*corev1.Pod, policies.Input) {
	t.Helper()
	policy, problems := config.Parse("policy", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed")
	if err != nil {
		t.Fatal(err)
	}
	in := policies.Input{Namespace: api.Namespace{Name: "team-a"}, Policy: policy, Pools: pools.FromNodes(nodes, config.PoolsSpec{}, nil)}
	in.Pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train", Labels: map[string]string{api.LabelMemory: "4Gi"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "trainer", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}},
		}}},
	}
	d := policies.Decide(in)
	if d.Outcome != policies.Mutated {
		t.Fatalf("%s: %s", d.Outcome, d.Message())
	}
	keys.Sign(d.Promise)
	pod := podedit.Apply(d.Promise, in.Pod)
	pod.Annotations[api.AnnotationPromise] = d.Promise.Encode()
	pod.Spec.NodeName = "l4-1"
	return pod, in
}

func TestSignings(t *testing.T) {
	t.Parallel()
	current := keysOf("c")
	for _, c := range []struct {
		name   string
		signer promise.Keys
		change func(*corev1.Pod)
		signed bool
		reason string // why it is not
	}{
		{"signed by a lost key", keysOf("l"), func(*corev1.Pod) {}, true, ""},
		{"signed by the installation's key", current, func(*corev1.Pod) {}, false, ""},
		{"without a promise", keysOf("l"), func(p *corev1.Pod) { p.Annotations = nil }, false, ""},
		{"not as its promise records", keysOf("l"), func(p *corev1.Pod) { p.Spec.Containers[0].Env = nil },
			false, "the slice was changed after it was given"},
		{"with more rights than a slice may have", keysOf("l"), func(p *corev1.Pod) { p.Spec.HostPID = true }, false, "hostPID"},
		{"charged less than its slice", keysOf("l"), func(p *corev1.Pod) {
			forged := promise.ClaimedPromise(p)
			forged.Charge.Memory = 1
			p.Annotations[api.AnnotationPromise] = forged.Encode()
		}, false, "charges less"},
		{"copied from another namespace", keysOf("l"), func(p *corev1.Pod) { p.Namespace = "team-b" }, false, "its promise cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pod, in := sliced(t, c.signer)
			c.change(pod)
			var found signings
			found.add(current, in, pod)
			if len(found.signed) > 0 != c.signed || len(found.skipped) > 0 != (c.reason != "") {
				t.Fatalf("signed %d, skipped %+v", len(found.signed), found.skipped)
			}
			if c.reason != "" && (!strings.Contains(found.skipped[0].reason, c.reason) || found.exit() != cli.ExitError(cli.ExitDenied)) {
				t.Errorf("skipped because %q, exit %v", found.skipped[0].reason, found.exit())
			}
			if c.signed {
				pod.Annotations[api.AnnotationPromise] = found.signed[0].text
				if p := current.PromiseOf(pod); p == nil || p.Charge.Slices != 1 {
					t.Errorf("the signature is not trusted: %+v", p)
				}
			}
		})
	}
}
