package nodetest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/test/cluster"
)

// timeSlicing is the device plugin's configuration for four replicas under a name of their own.
const timeSlicing = `version: v1
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources: [{name: nvidia.com/gpu, replicas: 4}]
`

func TestPlugin(t *testing.T) {
	t.Run("shares the simulated GPU", func(t *testing.T) {
		n := node(t)
		const name = "nvidia.com/gpu.shared"
		p, err := n.StartNVIDIAPlugin(cluster.NVIDIA{Config: timeSlicing})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		if err := n.AwaitAllocatable(t.Context(), name, 4); err != nil {
			t.Fatal(err)
		}

		show := "echo devices=$NVIDIA_VISIBLE_DEVICES; for f in /usr/lib/*/libnvidia-ml.so.1; do [ -e $f ] && echo library; done; true"
		create(t, n, "gpu", corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{asking(container("main", show), name), container("other", show)},
		})
		awaitPhase(t, n, "gpu", corev1.PodSucceeded)
		main, err := n.Kubectl(t.Context(), "logs", "gpu", "--container=main")
		if err != nil || !strings.HasPrefix(main, "devices=GPU-") || !strings.HasSuffix(main, "library\n") {
			t.Errorf("the container with a replica saw %q (%v), want a device and the driver's library", main, err)
		}
		other, err := n.Kubectl(t.Context(), "logs", "gpu", "--container=other")
		if err != nil || other != "devices=\n" {
			t.Errorf("its neighbour saw %q (%v), want nothing", other, err)
		}

		labels, err := n.DiscoverFeatures(t.Context(), cluster.NVIDIA{Config: timeSlicing})
		if err != nil {
			t.Fatal(err)
		}
		for label, want := range map[string]string{"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"} {
			if labels[label] != want {
				t.Errorf("label %s is %q, want %q", label, labels[label], want)
			}
		}

		if err := n.RestartKubelet(t.Context()); err != nil {
			t.Fatal(err)
		}
		await(t, "registration with the new kubelet", func() bool {
			log, err := p.Log()
			return err == nil && strings.Count(log, "Registered device plugin for '"+name+"'") == 2
		})
	})
}
