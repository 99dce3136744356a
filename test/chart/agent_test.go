package chart

import (
	"strings"
	"testing"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
)

// TestAgentRuntimeClass: an agent reaches the driver through NVIDIA's runtime where the cluster has it, and the values say
// nothing else.
func TestAgentRuntimeClass(t *testing.T) {
	t.Parallel()
	t.Run("is NVIDIA's where the cluster has it", func(t *testing.T) {
		t.Parallel()
		s := cluster.ForTest(t, cluster.Options{})
		h := newHelm(t, s.Kubeconfig)
		rendered := func(args ...string) (class string) {
			t.Helper()
			for line := range strings.Lines(h.run(append([]string{"template", release, chartFolder, version("v1"),
				"--namespace=" + api.SystemNamespace, "--set=agent.enabled=true"}, args...)...)) {
				if name, found := strings.CutPrefix(strings.TrimSpace(line), "runtimeClassName: "); found {
					class = strings.Trim(name, `"`)
				}
			}
			return class
		}
		const live = "--dry-run=server"
		if got := rendered(live); got != "" {
			t.Errorf("a cluster without it: %q", got)
		}
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "nvidia"}, Handler: "nvidia"}
		if _, err := s.Client.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{live}, "nvidia"},
			{nil, ""}, // without the cluster
			{[]string{live, "--set=agent.runtimeClassName=gpu"}, "gpu"},
			{[]string{live, "--set=agent.runtimeClassName=-"}, ""},
			{[]string{live, "--set=agent.cdiDevice=management.nvidia.com/gpu=all"}, ""},
		} {
			if got := rendered(c.args...); got != c.want {
				t.Errorf("%q: %q, want %q", c.args, got, c.want)
			}
		}
	})
}
