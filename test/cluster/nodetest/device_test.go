package nodetest

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/test/cluster"
)

// asking returns c with a limit of one replica.
func asking(c corev1.Container, name corev1.ResourceName) corev1.Container {
	c.Resources.Limits = corev1.ResourceList{name: resource.MustParse("1")}
	return c
}

// allocations returns the device identities of each container that the plugin served.
func allocations(t *testing.T, p *cluster.Plugin) [][]string {
	t.Helper()
	log, err := p.Log()
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for line := range strings.Lines(log) {
		var ids []string
		if err := json.Unmarshal([]byte(line), &ids); err != nil {
			t.Fatalf("plugin printed %q: %v", line, err)
		}
		all = append(all, ids)
	}
	return all
}

func TestInitContainer(t *testing.T) {
	t.Parallel()
	t.Run("takes no further replica", func(t *testing.T) {
		t.Parallel()
		n := node(t)
		const name = "example.test/shared"
		p, err := n.StartPlugin("shared", "-resource="+name, "-replicas=1", "-env=SHARE=yes",
			"-mount="+n.Dir+"/pki:/share:ro", "-device=/dev/zero:/dev/fake0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		if err := n.AwaitAllocatable(t.Context(), name, 1); err != nil {
			t.Fatal(err)
		}
		show := "echo $SHARE; [ -c /dev/fake0 ] && [ -e /share/ca.crt ] && echo seen; true"
		create(t, n, "replica", corev1.PodSpec{
			RestartPolicy:  corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{asking(container("check", show), name), container("without", show)},
			Containers:     []corev1.Container{asking(container("main", show), name)},
		})
		awaitPhase(t, n, "replica", corev1.PodSucceeded)
		for container, want := range map[string]string{"check": "yes\nseen\n", "without": "\n", "main": "yes\nseen\n"} {
			if out, err := n.Kubectl(t.Context(), "logs", "replica", "--container="+container); err != nil || out != want {
				t.Errorf("%s saw %q (%v), want %q", container, out, err, want)
			}
		}
		served := allocations(t, p)
		if len(served) != 2 || len(served[0]) != 1 || served[0][0] != served[1][0] {
			t.Errorf("allocated %v, want the same device for both containers", served)
		}
	})
}

func TestPodBeyondReplicas(t *testing.T) {
	t.Parallel()
	t.Run("waits for one", func(t *testing.T) {
		t.Parallel()
		n := node(t)
		const name = "example.test/scarce"
		p, err := n.StartPlugin("scarce", "-resource="+name, "-replicas=1")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		if err := n.AwaitAllocatable(t.Context(), name, 1); err != nil {
			t.Fatal(err)
		}
		for _, pod := range []string{"holds", "waits"} {
			spec := corev1.PodSpec{Containers: []corev1.Container{asking(container("main", "exec sleep 1000"), name)}}
			create(t, n, pod, spec)
			if pod == "holds" {
				awaitPhase(t, n, pod, corev1.PodRunning)
			}
		}
		await(t, "message that says what is missing", func() bool {
			for _, c := range get(t, n, "waits").Status.Conditions {
				if c.Type == corev1.PodScheduled && strings.Contains(c.Message, "Insufficient "+name) {
					return true
				}
			}
			return false
		})
		remove(t, n, "holds")
		awaitPhase(t, n, "waits", corev1.PodRunning)
	})
}
