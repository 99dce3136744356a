package doctor

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

// sampleImage is never pulled: samples are decided on, and created as dry-runs.
const sampleImage = "registry.k8s.io/pause:3.10"

// Sample is the smallest pod that asks for a slice in the namespace and gets one, with what was decided; false where
// none does, with the last answer. It keeps every rule of Pod Security.
func Sample(g Governed) (*corev1.Pod, policies.Decision, bool) {
	var last policies.Decision
	for _, ask := range asks(g.Input.Policy) {
		pod := asking(g.Name, ask)
		in := g.Input
		in.Pod = pod
		if last = policies.Decide(in); last.Would == policies.Rewritten && len(last.Promise.Containers) > 0 {
			return pod, last, true
		}
	}
	return nil, last, false
}

// asks are what a pod may say to get a slice under the policy, the least first.
func asks(p *config.Policy) []map[string]string {
	all := []map[string]string{{api.LabelMemory: "256Mi"}, {api.LabelClass: api.ClassReplica}}
	if p.DefaultSlice != nil {
		all = append(all, map[string]string{api.LabelShare: api.ShareEnabled})
	}
	return all
}

// asking is a pod with labels that asks for a GPU.
func asking(namespace string, labels map[string]string) *corev1.Pod {
	yes, no, user := true, false, int64(10001)
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "gpuslice-verify-", Namespace: namespace, Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "sample", Image: sampleImage,
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// Refusable is a pod that a policy which enforces has to refuse: it asks for what is no amount of memory.
func Refusable(g Governed) (*corev1.Pod, policies.Decision) {
	pod := asking(g.Name, map[string]string{api.LabelMemory: "refuse-me"})
	in := g.Input
	in.Pod = pod
	return pod, policies.Decide(in)
}
