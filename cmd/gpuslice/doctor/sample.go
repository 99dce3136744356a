package doctor

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

// sampleImage is never pulled: samples are decided on, and created as dry-runs.
const sampleImage = "registry.k8s.io/pause:3.10"

// Sample is the smallest pod that requests a slice in the namespace and gets one, with the decision; false if none does,
// with the last decision. It keeps every rule of Pod Security.
func Sample(g Governed) (*corev1.Pod, policies.Decision, bool) {
	var last policies.Decision
	for _, labels := range requests(g.Input.Policy) {
		pod := PodWith(g.Name, labels)
		in := g.Input
		in.Pod = pod
		if last = policies.Decide(in); last.IfEnforced == policies.Mutated && len(last.Promise.Containers) > 0 {
			return pod, last, true
		}
	}
	return nil, last, false
}

// requests are the labels by which a pod may get a slice under the policy, the least first.
func requests(p *config.Policy) []map[string]string {
	least := cmp.Or(p.Limits.MinMemory, p.Allowance(1))
	all := []map[string]string{{api.LabelMemory: least.String()}, {api.LabelClass: api.ClassReplica}}
	if p.DefaultSlice != nil {
		all = append(all, map[string]string{api.LabelShare: api.ShareEnabled})
	}
	return all
}

// PodWith is a pod with labels that requests a GPU.
func PodWith(namespace string, labels map[string]string) *corev1.Pod {
	pod := installed.RestrictedPod("gpuslice-verify-", "sample", sampleImage)
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Namespace, pod.Labels = namespace, labels
	pod.Spec.RestartPolicy, pod.Spec.SecurityContext.RunAsUser = corev1.RestartPolicyNever, new(int64(10001))
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}
	return pod
}

// Deniable is a pod that an enforced policy has to deny: the size that it requests is no amount of memory.
func Deniable(g Governed) (*corev1.Pod, policies.Decision) {
	pod := PodWith(g.Name, map[string]string{api.LabelMemory: "deny-me"})
	in := g.Input
	in.Pod = pod
	return pod, policies.Decide(in)
}
