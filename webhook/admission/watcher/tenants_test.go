package watcher

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/clustertest"
)

// limitOf is the largest slice that a pod of the namespace may have, and its notes.
func (r *replica) limitOf(t *testing.T, namespace string) string {
	t.Helper()
	in, err := r.Input(t.Context(), namespace)
	if err != nil || in.Policy == nil {
		t.Fatalf("%v, %v", in.PolicyError, err)
	}
	return strings.TrimSpace(in.Policy.Limits.PerContainer.Memory.String() + " " + strings.Join(in.TenantNotes, "; "))
}

func TestTenantDocument(t *testing.T) {
	t.Run("tightens its namespace alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil), clustertest.Namespace("team-b", nil),
				clustertest.PolicyMap("default", 10, "limits: {perContainer: {memory: 8Gi}}"),
				clustertest.TenantMap("team-a", "limits: {perContainer: {memory: 4Gi}}"),
				clustertest.TenantMap(system, "limits: {perContainer: {memory: 1Gi}}"),
				clustertest.Edited(clustertest.TenantMap("team-b", "limits: {perContainer: {memory: 2Gi}}"),
					func(m *corev1.ConfigMap) { m.Name, m.Labels = "other", map[string]string{api.LabelPolicy: "true"} }))
			r := start(t, client)
			defer r.end()
			expect := func(when, a string) {
				t.Helper()
				clustertest.Settle()
				if got := r.limitOf(t, "team-a"); got != a {
					t.Errorf("%s: %q, want %q", when, got, a)
				}
				if got := r.limitOf(t, "team-b"); got != "8Gi" && when != "the authority tightens" {
					t.Errorf("%s: team-b has %q", when, got)
				}
			}
			own := client.CoreV1().ConfigMaps("team-a")
			generations := func() (a, b any) {
				s, err := r.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				return s.Generation("team-a"), s.Generation("team-b")
			}
			expect("as it was written", "4Gi")
			a, b := generations()
			first, _ := r.Input(t.Context(), "team-a")
			if again, _ := r.Input(t.Context(), "team-a"); again.Policy != first.Policy {
				t.Error("the policy was merged for each request")
			}
			if _, err := own.Update(t.Context(), clustertest.Edited(clustertest.TenantMap("team-a", "limits: {perContainer: {memory: 3Gi}}"),
				func(m *corev1.ConfigMap) { m.ResourceVersion = "21" }),
				metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			expect("changed", "3Gi")
			if laterA, laterB := generations(); laterA == a || laterB != b {
				t.Error("a tenant's document changes the generation of its own namespace alone")
			}
			write(t, client, clustertest.PolicyMap("default", 22, "limits: {perContainer: {memory: 2Gi}}"))
			if _, later := generations(); later == b {
				t.Error("the authority's policy changes no generation")
			}
			expect("the authority tightens", "2Gi team-a/gpuslice-policy requests more than policy gpuslice-system/default allows, and there the policy applies: limits.perContainer.memory: 3Gi is more than 2Gi")
			write(t, client, clustertest.PolicyMap("default", 23, "limits: {perContainer: {memory: 8Gi}}"))
			expect("and is lax again", "3Gi")
			if _, err := own.Update(t.Context(), clustertest.Edited(clustertest.TenantMap("team-a", "limits: {perContainer: {memory: lots}}"),
				func(m *corev1.ConfigMap) { m.ResourceVersion = "24" }),
				metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			expect("broken", `8Gi team-a/gpuslice-policy cannot be used, and policy gpuslice-system/default applies without it: data[policy.yaml]: limits.perContainer.memory: Invalid value: "lots": `+
				`"lots" is not an amount of memory; accepted: a positive quantity such as "8Gi" or "9728Mi" (line 2)`)
			if text := r.scrape(); !strings.Contains(text, `gpuslice_tenant_policies{usable="false"} 1`) ||
				!strings.Contains(text, `gpuslice_tenant_policies{usable="true"} 0`) {
				t.Error("the metric does not show it")
			}
			if tenants := r.StateReport().Tenants; len(tenants) != 1 || tenants[0].Name != "team-a/gpuslice-policy" ||
				tenants[0].ResourceVersion != "24" || len(tenants[0].Notes) != 1 {
				t.Errorf("the state shows %+v", tenants)
			}
			if err := own.Delete(t.Context(), api.TenantPolicyName, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			expect("deleted", "8Gi")
		})
	})
}

func TestSnapshotConflicts(t *testing.T) {
	t.Run("are counted and reported", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, fake.NewClientset(clustertest.Namespace("team-a", nil),
				clustertest.PolicyMap("a", 10, "namespaces: {names: [team-a]}\nquota: {budget: ml, memory: 64Gi}"),
				clustertest.PolicyMap("b", 11, "namespaces: {names: [team-b]}\nquota: {budget: ml, memory: 48Gi}")))
			defer r.end()
			in, err := r.Input(t.Context(), "team-a")
			if err != nil || in.Policy == nil || *in.Policy.Quota.Memory != 48<<10 {
				t.Errorf("the stricter does not hold: %+v, %v", in.Policy, err)
			}
			if !strings.Contains(r.scrape(), "gpuslice_policy_conflicts 1") || len(r.StateReport().Conflicts) != 1 {
				t.Errorf("it is not reported: %q", r.StateReport().Conflicts)
			}
		})
	})
}

func TestSlimTenant(t *testing.T) {
	t.Run("keeps what a tenant writes within bounds", func(t *testing.T) {
		t.Parallel()
		m := clustertest.TenantMap("team-a", strings.Repeat("#", 900<<10))
		m.Annotations = map[string]string{"x": strings.Repeat("y", 100<<10)}
		m.Data["other"], m.BinaryData = strings.Repeat("z", 10<<10), map[string][]byte{"b": make([]byte, 10<<10)}
		kept, _ := slimTenant(m)
		size := len(kept.(*corev1.ConfigMap).String())
		if size > config.MaxTenantDocument+1024 {
			t.Errorf("%d bytes are kept", size)
		}
		got := config.ReadTenantDocument(kept.(*corev1.ConfigMap))
		var texts []string
		for _, err := range got.Problems {
			texts = append(texts, err.Error())
		}
		want := []string{"data: there are keys beside policy.yaml, and nothing reads them",
			"data[policy.yaml]: policy.yaml: Invalid value: a tenant's own document has at most 16384 bytes"}
		if diff := cmp.Diff(want, texts); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
