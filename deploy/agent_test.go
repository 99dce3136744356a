package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// ofAgent returns the agent's one object of a type.
func ofAgent[T any](t *testing.T) T {
	t.Helper()
	for _, object := range manifests(t, "agent/agent.yaml") {
		if typed, ok := object.(T); ok {
			return typed
		}
	}
	t.Fatalf("the agent has no %T", *new(T))
	panic("unreachable")
}

func TestAgentPod(t *testing.T) {
	t.Parallel()
	pod := ofAgent[*appsv1.DaemonSet](t).Spec.Template.Spec
	c := pod.Containers[0]
	t.Run("has hostPID, the capability KILL and the kubelet's socket, and nothing else of the node's", func(t *testing.T) {
		t.Parallel()
		want := &corev1.SecurityContext{
			RunAsUser: new(int64(0)), RunAsNonRoot: new(false), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"KILL"}},
		}
		if diff := cmp.Diff(want, c.SecurityContext); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if !pod.HostPID || pod.HostNetwork || pod.HostIPC ||
			pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || len(pod.Containers) != 1 {
			t.Errorf("the pod is %+v", pod)
		}
		mounts := map[string]bool{}
		for _, v := range pod.Volumes {
			mount := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
			if v.HostPath == nil || mount < 0 {
				t.Fatalf("the volume %+v", v)
			}
			mounts[v.HostPath.Path] = c.VolumeMounts[mount].ReadOnly
		}
		if diff := cmp.Diff(map[string]bool{"/run/nvidia/mps": true, "/var/lib/kubelet/device-plugins": false}, mounts); diff != "" {
			t.Errorf("its mounts, and which are read-only (-want +got)\n%s", diff)
		}
	})
	t.Run("is never starved or evicted", func(t *testing.T) {
		t.Parallel()
		if _, limited := c.Resources.Limits[corev1.ResourceCPU]; limited || c.Resources.Limits.Memory().String() != "128Mi" ||
			pod.PriorityClassName != "system-node-critical" {
			t.Errorf("limits %v, priority class %q", c.Resources.Limits, pod.PriorityClassName)
		}
	})
	t.Run("runs on every node with GPUs, tainted or not", func(t *testing.T) {
		t.Parallel()
		if pod.NodeSelector["nvidia.com/gpu.present"] != "true" || len(pod.Tolerations) != 1 ||
			pod.Tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) {
			t.Errorf("node selector %v, tolerations %v", pod.NodeSelector, pod.Tolerations)
		}
	})
}

func TestAgentRights(t *testing.T) {
	t.Parallel()
	var got []string
	for _, rules := range [][]rbacv1.PolicyRule{ofAgent[*rbacv1.ClusterRole](t).Rules, ofAgent[*rbacv1.Role](t).Rules} {
		for _, r := range rules {
			got = append(got, strings.Join(r.Verbs, ",")+" "+strings.Join(r.Resources, ","))
		}
	}
	if diff := cmp.Diff([]string{"list,watch pods", "create,patch events", "get,create,update leases"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	account := ofAgent[*corev1.ServiceAccount](t)
	p := ofAgent[*admissionv1.ValidatingAdmissionPolicy](t)
	if user := "'system:serviceaccount:" + account.Namespace + ":" + account.Name +
		"'"; !strings.HasSuffix(p.Spec.MatchConditions[0].Expression, user) {
		t.Errorf("the policy is about %s, want %s", p.Spec.MatchConditions[0].Expression, user)
	}
	if b := ofAgent[*admissionv1.ValidatingAdmissionPolicyBinding](t); b.Spec.PolicyName != p.Name ||
		!slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) {
		t.Errorf("the binding: %+v", b.Spec)
	}
}

// TestAgentIsOptional: an installation has no agent unless it is wanted.
func TestAgentIsOptional(t *testing.T) {
	t.Parallel()
	for _, object := range manifests(t, "*.yaml") {
		if _, found := object.(*appsv1.DaemonSet); found {
			t.Error("the manifests have a DaemonSet")
		}
	}
	text := derived(t)["chart/templates/57-agent.yaml"]
	if !strings.Contains(text, "\n{{- if .Values.agent.enabled }}\n") || !strings.HasSuffix(text, "{{- end }}\n") {
		t.Errorf("the chart has it always:\n%.300s", text)
	}
}
