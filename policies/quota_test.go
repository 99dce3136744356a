package policies

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/quota"
)

func ownedBy(apiVersion, kind string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "web-1", Controller: new(true)}}}}
}

func TestDenyQuotaOfADeployment(t *testing.T) {
	t.Parallel()
	deployments := map[string]string{"pod-template-hash": "1"}
	full := quota.Excess{Quota: "team-a", Dimension: "slices", Requested: "1", Used: "2", Limited: "2"}
	for _, c := range []struct {
		name   string
		pod    *corev1.Pod
		excess quota.Excess
		want   bool
	}{
		{"a pod of a Deployment at a full quota", ownedBy("apps/v1", "ReplicaSet", deployments), full, true},
		{"one of a ReplicaSet's own", ownedBy("apps/v1", "ReplicaSet", nil), full, false},
		{"one of a Job", ownedBy("batch/v1", "Job", deployments), full, false},
		{"one of nobody", &corev1.Pod{}, full, false},
		{"one that never fits", ownedBy("apps/v1", "ReplicaSet", deployments),
			quota.Excess{Quota: "team-a", Dimension: "slices", Requested: "3", Used: "0", Limited: "2"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := Input{Pod: c.pod, Policy: &config.Policy{Mode: modes.OptIn, EnforcementMode: api.EnforceFull}}
			d := DenyQuota(in, []quota.Excess{c.excess})
			if got := strings.Contains(d.Message(),
				"a rolling update, which needs room for one more pod, also goes on with strategy.rollingUpdate.maxSurge: 0"); got != c.want ||
				d.Outcome != Denied {
				t.Errorf("%s", d.Message())
			}
		})
	}
}

func TestDenyQuotaOfAMisspeltLabel(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"gpuslice.dev/memroy": "8Gi"}}}
	in := Input{Pod: pod, Policy: &config.Policy{Mode: modes.OptIn, EnforcementMode: api.EnforceFull}}
	for requested, suggested := range map[string]bool{"unknown": true, "8Gi": false} {
		d := DenyQuota(in, []quota.Excess{{Quota: "team-a", Dimension: "memory", Requested: requested, Used: "0Mi", Limited: "16Gi"}})
		if strings.Contains(d.Message(), "did you mean gpuslice.dev/memory?") != suggested {
			t.Errorf("requested %s: %s", requested, d.Message())
		}
	}
}

func TestDenyQuotaOfOthers(t *testing.T) {
	t.Parallel()
	t.Run("enforcement warn does not concern the quotas of others", func(t *testing.T) {
		in := Input{Pod: new(corev1.Pod), Policy: &config.Policy{Mode: modes.OptIn, EnforcementMode: api.EnforceWarn}}
		ours := quota.Excess{Quota: "team-a", Dimension: "slices", Requested: "1", Used: "4", Limited: "4"}
		native := quota.Excess{Quota: "gpus (ResourceQuota)", Dimension: "requests.nvidia.com/gpu",
			Requested: "1", Used: "2", Limited: "2", Native: true}
		if d := DenyQuota(in, []quota.Excess{ours}); d.Outcome != Unchanged || len(d.Warnings) != 1 {
			t.Errorf("the policy's own limit: %+v", d)
		}
		if d := DenyQuota(in, []quota.Excess{ours, native}); d.Outcome != Denied ||
			!strings.HasPrefix(d.Message(), "exceeded quota: gpus (ResourceQuota), ") {
			t.Errorf("a ResourceQuota: %+v", d)
		}
	})
}
